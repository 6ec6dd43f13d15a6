//! Which tests of the suite hold of devices that reach the host's memory.

/// Tests that count what is copied between two memories, or what the second takes; or that copy to
/// the host what a kernel writes which waits at a gate: the host itself copies it, and would wait.
const OF_TWO_MEMORIES: &[&str] = &[
    "accesses::",
    "assigning::",
    "devices::",
    "early::",
    "fields::",
    "parts::",
    "chains::replays_upload_once_what_they_read",
    "copies::a_download_on_a_stream_of_its_own_keeps_order",
    "copies::a_download_on_a_stream_of_its_own_overtakes_a_kernel",
    "copies::a_large_array_in_column_order",
    "copies::a_snapshot_of_a_large_array_in_several_pieces",
    "copies::rows_of_a_large_array_in_several_pieces",
    "copies::several_pieces_up_and_down",
    "copies::sizes_around_those_at_which_the_way_changes",
    "fills::a_constant_moves_nothing",
    "guards::a_declared_change_that_would_lose_an_update_is_refused",
    "guards::declared_changes_are_changes",
    "in_place::managed_memory_is_not_asked_for_beyond_what_is_free",
    "in_place::what_is_in_place_is_never_evicted",
    "launching::a_chain_of_launches",
    "launching::a_denied_copy_of_a_launch_is_not_made",
    "launching::launches_and_the_host_take_turns",
    "launching::sized_parts_are_changed_in_place",
    "memory::a_limit_is_kept_and_copies_give_way",
    "memory::an_array_larger_than_the_device",
    "memory::live_arrays_are_in_use_and_dropped_ones_are_not",
    "memory::threads_that_first_use_parts_allocate_the_array_once",
    "streams::a_stream_dropped_with_work_in_flight",
    "streams::dropped_arrays_delay_no_stream",
    "streams::three_streams_overlap",
    "threads::an_array_dropped_on_a_thread_that_never_saw_the_device",
    "threads::many_threads_read_one_array_and_it_moves_once",
    "threads::threads_with_streams_of_their_own",
    "views::chains_of_rearrangements_have_the_elements_of_ndarrays",
    "views::chains_on_exclusive_fields_write_the_elements_of_ndarrays",
    "views::chains_on_exclusive_views_write_the_elements_of_ndarrays",
    "views::chains_on_fields_have_the_elements_of_ndarrays",
    "watching::a_watch_outlives_its_array",
    "watching::changes_while_a_state_is_on_its_way_are_skipped",
    "watching::each_change_that_is_waited_for_is_shown",
    "watching::every_third_change_is_shown",
    "watching::two_arrays_have_many_watches",
];

/// The arguments with which these tests run, those of two memories left out, and the one that calls
/// this.
pub(crate) fn arguments<'a>(tests: &[&'a str]) -> Vec<&'a str> {
    let others = ["on_one_memory", "on_a_poorer_machine", "with_short_rows_packed"];
    let skips = OF_TWO_MEMORIES.iter().chain(&others);
    tests.iter().copied().chain(skips.flat_map(|skipped| ["--skip", *skipped])).collect()
}
