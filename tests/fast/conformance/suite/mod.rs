//! The behaviour that every backend must have: each function here is a test of the public interface
//! that `embedded`, `stand_in`, `hip` and `gpu` run.
//!
//! - `lab`, `kernels`, `gates`, `values`: the devices under test, their kernels, gates at which a
//!   stream waits, recognisable contents; `prelude` has what most tests name of them
//! - `accesses`, `parts`, `fills`, `copies`, `assigning`: arrays of all shapes, layouts and sizes
//!   are uploaded and downloaded, whole and in part
//! - `views`: rearranged, repeated and divided views, against ndarray's
//! - `fields`: views of fields of records
//! - `device_arrays`: explicit device arrays
//! - `chains`: launches, copies and fills that are queued as one operation
//! - `dlpack`: memory exchanged with other code
//! - `launching`, `streams`, `guards`, `early`, `threads`: the order of work, and work in flight
//! - `host_functions`: functions of the host behind a stream's work
//! - `uses`: random programs for arrays in any memory
//! - `host_memory`: pinned and mapped arrays, and arrays that are lent
//! - `in_place`: memory that the host and a device both access
//! - `watching`: states that come down by themselves
//! - `devices`, `memory`: several devices, and full devices
//! - `one_memory`: which tests hold of devices that reach the host's memory
//! - `cuda`: the kernels in CUDA C

#![allow(dead_code, unused_macros, unused_imports, reason = "each test file uses some of it")]

pub(crate) mod accesses;
pub(crate) mod assigning;
pub(crate) mod chains;
pub(crate) mod copies;
pub(crate) mod cuda;
pub(crate) mod device_arrays;
pub(crate) mod devices;
#[cfg(feature = "dlpack")]
pub(crate) mod dlpack;
pub(crate) mod early;
pub(crate) mod fields;
pub(crate) mod fills;
pub(crate) mod gates;
pub(crate) mod guards;
pub(crate) mod host_functions;
pub(crate) mod host_memory;
pub(crate) mod in_place;
pub(crate) mod kernels;
pub(crate) mod lab;
pub(crate) mod launching;
pub(crate) mod memory;
pub(crate) mod one_memory;
pub(crate) mod parts;
pub(crate) mod prelude;
pub(crate) mod streams;
pub(crate) mod threads;
mod uses;
pub(crate) mod values;
pub(crate) mod views;
pub(crate) mod watching;

/// Makes a `#[test]` for each function listed. `$run` gets the test's name and the function.
macro_rules! tests_of {
    ($run:path: $($(#[$with:meta])* $module:ident { $($test:ident),+ $(,)? })+) => {
        $($(#[$with])*
        mod $module {
            $(#[test]
            fn $test() {
                $run(support::test_name!($test), crate::suite::$module::$test);
            })+
        })+
    };
}

/// Makes the tests of the whole suite.
macro_rules! conformance {
    ($run:path) => {
        $crate::suite::tests_of! { $run:
            accesses {
                arrays_of_one_to_seven_dimensions_are_uploaded_and_downloaded,
                arrays_in_any_axis_order_are_uploaded_and_downloaded,
                elements_of_all_sizes_are_uploaded_and_downloaded,
                an_array_without_dimensions_is_one_element,
                what_has_no_element_never_reaches_a_device,
                a_guard_says_what_it_guards,
                an_address_stays_for_the_life_of_the_array,
                single_elements_are_read_and_written_where_they_are_newest,
                what_was_never_written_cannot_be_read,
                an_overwrite_moves_nothing,
            }
            chains {
                chains_compute_what_their_steps_compute,
                chains_come_before_and_after_work_of_other_streams,
                replays_upload_once_what_they_read,
                chains_repeat,
                chains_take_parts_of_any_layout,
                chains_are_refused_before_anything_moves,
            }
            parts {
                a_part_is_downloaded_without_the_rest,
                a_part_is_uploaded_without_the_rest,
                every_other_element_of_each_axis_is_copied_without_the_rest,
                reversed_parts_move_the_same_bytes,
                planes_whose_distance_is_no_whole_number_of_lines,
                a_box_inside_a_volume_is_copied_without_the_rest,
                parts_of_seven_dimensions,
                what_is_valid_is_not_moved_again,
                many_small_parts_are_one_copy,
                only_changed_rows_are_uploaded,
                a_part_of_a_part,
                halves_newest_at_different_places_are_joined,
                what_is_uploaded_between_parts_waits_for_its_readers,
            }
            views {
                chains_of_rearrangements_have_the_elements_of_ndarrays,
                chains_on_device_arrays_have_the_elements_of_ndarrays,
                chains_on_exclusive_views_write_the_elements_of_ndarrays,
                chains_on_exclusive_device_views_write_the_elements_of_ndarrays,
                chains_on_fields_have_the_elements_of_ndarrays,
                chains_on_exclusive_fields_write_the_elements_of_ndarrays,
                kernels_take_rows_columns_chunks_and_other_axes,
            }
            fields {
                fields_and_elements_move_exactly_their_stale_bytes,
                kernels_take_fields_and_only_these_move,
                one_launch_takes_several_fields,
                constants_of_records_are_filled_field_by_field,
                a_field_is_written_before_the_others,
                device_records_have_fields,
                fields_of_pinned_and_mapped_records,
            }
            device_arrays {
                strided_copies_in_every_direction_are_exact,
                parts_that_overlap_are_copied_as_through_a_temporary,
                large_copies_arrive_in_pieces,
                kernels_take_device_arrays_and_nothing_moves,
                a_copy_that_is_pending_has_the_contents_of_its_time,
                a_pending_copy_is_awaited,
                what_is_there_is_not_copied_between_kinds_of_arrays,
                device_arrays_are_refused_on_other_devices,
                device_arrays_refuse_what_does_not_fit,
            }
            #[cfg(feature = "dlpack")]
            dlpack {
                memory_of_others_is_used_in_place_and_freed_once,
                tensors_of_any_layout_without_gaps_are_taken_over,
                tensors_that_do_not_fit_are_refused_and_freed,
                an_array_is_handed_out_in_place,
                memory_that_an_array_uses_is_not_taken_over,
                pinned_memory_of_an_array_is_not_taken_over,
                memory_that_the_host_accesses_too_comes_back,
                memory_that_comes_back_counts_once_and_is_freed_once,
                one_array_at_a_time_uses_memory_that_came_back,
                work_of_others_and_of_this_library_is_ordered_by_the_stream,
                read_only_tensors_are_read_in_place,
                a_read_only_array_is_read_by_others_and_by_the_program,
                memory_is_written_after_the_work_of_those_who_read_it,
            }
            fills {
                fills_of_all_sizes_of_elements,
                fills_of_parts_touch_nothing_else,
                fills_of_volumes_and_of_more_axes,
                fills_around_the_sizes_at_which_the_way_changes,
                a_fill_at_an_odd_offset,
                a_constant_moves_nothing,
                a_fill_behind_a_write_and_a_write_behind_a_fill,
                single_elements_are_set_on_the_device,
            }
            copies {
                sizes_around_those_at_which_the_way_changes,
                several_pieces_up_and_down,
                the_source_may_be_overwritten_right_after_an_upload,
                pinned_memory_is_overwritten_behind_the_upload,
                pinned_memory_is_downloaded_and_uploaded,
                pinned_parts,
                an_array_is_pinned_after_it_was_used,
                pinned_neighbours_come_and_go,
                a_pinned_array_is_taken_back,
                rows_of_a_large_array_in_several_pieces,
                a_snapshot_of_a_large_array_in_several_pieces,
                columns_of_a_large_array_in_several_pieces,
                a_large_array_in_column_order,
                a_download_on_a_stream_of_its_own_overtakes_a_kernel,
                a_download_on_a_stream_of_its_own_keeps_order,
                an_array_of_more_than_four_gigabytes,
            }
            host_memory {
                pinned_arrays_are_made_used_and_taken_back,
                pinned_arrays_start_with_and_without_contents,
                pinned_arrays_are_overwritten_behind_the_upload,
                device_arrays_are_copied_to_and_from_pinned_arrays,
                device_arrays_are_copied_from_pinned_arrays_at_once,
                device_arrays_are_copied_to_pinned_arrays_at_once,
                device_arrays_are_copied_to_arrays_that_are_not_pinned,
                copies_to_pinned_arrays_follow_earlier_uses,
                threads_share_a_pinned_array,
                lent_arrays_are_pinned_for_the_call,
                a_loan_ends_after_the_work_in_flight,
                what_cannot_be_lent_is_refused,
                any_uses_of_pinned_memory_are_those_of_ndarray,
                mapped_arrays_are_never_copied,
                the_host_waits_for_work_on_mapped_memory,
                mapped_arrays_belong_to_one_device,
                mapped_arrays_are_dropped_in_flight,
                any_uses_of_mapped_memory_are_those_of_ndarray,
            }
            in_place {
                managed_arrays_are_used_in_place,
                managed_zeros_are_zeros_on_either_side,
                advice_on_managed_arrays_changes_no_contents,
                managed_memory_is_not_asked_for_beyond_what_is_free,
                prefetches_are_refused_on_other_devices,
                managed_arrays_are_dropped_in_flight,
                host_and_device_are_one_location,
                what_is_in_place_is_never_evicted,
                the_host_waits_for_all_uses_in_place,
                lent_arrays_are_mapped_for_the_call,
                a_mapping_ends_after_the_work_in_flight,
                any_uses_in_place_move_nothing,
                any_uses_on_several_devices_are_those_of_ndarray,
                work_in_place_follows_downloads_of_other_devices,
                what_another_device_has_is_assigned_in_place,
            }
            assigning {
                whole_arrays_are_assigned_on_the_device,
                parts_are_assigned_on_the_device,
                transposed_and_reversed_parts_are_assigned_on_the_device,
                disjoint_parts_of_one_array_are_assigned,
                repeated_elements_are_assigned_on_the_device,
                a_clone_stays_where_its_original_is,
                volumes_are_assigned_on_the_device,
                an_assignment_from_the_host_to_a_stream,
            }
            launching {
                a_chain_of_launches,
                a_chain_across_streams,
                readers_on_many_streams_before_one_writer,
                sized_arguments_take_any_layout,
                slices_are_passed_with_their_length,
                sized_parts_are_changed_in_place,
                a_launch_of_nothing,
                a_launch_reads_what_the_host_has_just_written,
                launches_and_the_host_take_turns,
                a_denied_copy_of_a_launch_is_not_made,
                a_kernel_without_a_body_for_this_device,
                a_kernel_does_what_its_host_body_does,
            }
            streams {
                a_stream_knows_whether_it_is_idle,
                three_streams_overlap,
                dropped_arrays_delay_no_stream,
                readers_do_not_delay_each_other_when_the_array_is_dropped,
                a_stream_that_waits_for_an_event_starts_after_it,
                an_event_behind_a_wait_covers_what_was_waited_for,
                a_synchronised_stream_has_done_its_waiting,
                an_event_with_nothing_before_it_is_complete,
                the_time_between_two_events,
                the_time_between_events_without_work,
                more_events_than_a_pool_keeps,
                a_stream_made_while_another_works_waits_for_nothing,
                a_stream_dropped_with_work_in_flight,
                a_stream_synchronises_itself_when_its_guard_drops,
                synchronising_a_device_waits_for_all_its_streams,
                many_streams_come_and_go,
                an_embedded_body_may_not_wait_for_another_devices_stream,
                a_stream_is_awaited,
                a_host_function_runs_before_work_behind_it,
                a_stream_is_awaited_up_to_a_position,
                streams_have_priorities,
                many_threads_share_a_stream,
            }
            host_functions {
                a_host_function_runs_after_the_work_before_it,
                no_work_waits_for_a_host_function,
                host_functions_of_a_stream_run_in_order,
                a_host_function_may_call_everything,
                a_host_function_is_awaited,
                host_functions_that_panic_harm_nothing,
                a_host_function_cannot_wait_for_itself,
                streams_with_host_functions_come_and_go,
            }
            watching {
                each_change_that_is_waited_for_is_shown,
                changes_while_a_state_is_on_its_way_are_skipped,
                every_third_change_is_shown,
                a_watch_outlives_its_array,
                states_that_are_kept_stay_as_they_are,
                two_arrays_have_many_watches,
                all_writes_on_a_device_are_changes,
                a_watched_array_in_column_order,
                a_change_is_awaited,
                watches_are_dropped_in_flight,
                threads_look_while_another_computes,
                a_watched_array_moves_between_devices,
                parts_in_several_places_are_shown,
                a_large_array_is_watched,
                arrays_without_elements_have_no_states,
            }
            guards {
                an_open_guard_holds_a_writer_elsewhere_back,
                forgotten_guards_lose_nothing,
                a_guard_on_another_stream_follows_what_was_queued,
                declared_changes_are_changes,
                a_declared_change_that_would_lose_an_update_is_refused,
                disjoint_parts_are_guarded_at_once,
            }
            early {
                a_prefetch_is_there_already,
                a_prefetch_to_the_host_does_not_wait,
                a_download_that_was_overtaken_arrives_first,
                an_array_is_taken_back_from_all_streams,
                a_snapshot_is_of_its_moment,
                a_snapshot_of_parts_at_different_places,
                a_snapshot_outlives_its_array,
                snapshots_into_the_same_memory_are_of_their_moments,
                parts_of_any_layout_are_copied_into_the_same_memory,
                a_snapshot_that_is_never_waited_for,
                a_snapshot_is_awaited,
                many_snapshots_are_awaited_in_any_order,
                a_waker_is_woken_once_the_work_is_done,
                tasks_are_woken_while_work_behind_theirs_waits,
                an_array_dropped_in_flight,
            }
            threads {
                many_threads_read_one_array_and_it_moves_once,
                threads_with_streams_of_their_own,
                an_array_dropped_on_a_thread_that_never_saw_the_device,
                threads_write_parts_of_one_array,
                threads_pass_an_array_on,
            }
            devices {
                an_array_moves_between_devices,
                parts_move_between_devices,
                boxes_of_volumes_move_between_devices,
                halves_on_two_devices_are_joined,
                an_assignment_between_devices,
                streams_of_two_devices_wait_for_each_other,
                an_array_dropped_while_another_device_reads_it,
                a_device_waits_for_those_who_read_its_memory,
                launches_on_two_devices_take_turns,
                a_denied_copy_between_devices_is_not_made,
            }
            memory {
                live_arrays_are_in_use_and_dropped_ones_are_not,
                memory_is_used_again,
                what_is_kept_is_given_back,
                a_limit_is_kept_and_copies_give_way,
                device_arrays_stay_on_a_full_device,
                threads_that_need_room_at_once_find_it,
                threads_that_first_use_parts_allocate_the_array_once,
                parts_of_an_array_larger_than_the_memory_are_used_in_turn,
                a_device_reports_its_capacity,
                an_array_larger_than_the_device,
                memory_freed_in_flight_is_found_when_there_is_no_room,
                many_arrays_come_and_go_without_waiting,
            }
        }
    };
}

pub(crate) use {conformance, tests_of};
