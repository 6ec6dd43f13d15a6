//! Sends a file that is four times as large as the memory of a device through three kernels, into
//! another file. The input is a memory map, which arrays read in place. While a chunk of it is
//! uploaded, the one before is computed, the result of an earlier one is downloaded, and that of
//! the one before is written (`streaming.rs`).
//!
//! The program prints how long this took, beside the speed of the device's copies, and checks each
//! sample of the result.

mod progress;

use std::fmt::Display;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use memmap2::Mmap;
use resident::{Device, DeviceArray, PinnedArray, bytemuck};
use resident_example_programs::stream_file::kernels::expected;
use resident_example_programs::stream_file::streaming::{MEMORY_BYTES_MIN, ROW_LEN, Streaming};

use progress::Progress;

const HELP: &str = "\
Smooths the samples of a file that is four times as large as the memory of a device.

usage: stream_file [MEGABYTES]
       stream_file INPUT OUTPUT

  MEGABYTES  the size of the file, which the program makes in a temporary folder [64]
  INPUT      a file of rows of 4,096 unsigned numbers of 16 bits; nothing may write it meanwhile
  OUTPUT     the file to write, which does not exist yet

Exits with 1 if the result is wrong or a device failed, 2 if the input cannot be used.";

const ROW_BYTES: usize = ROW_LEN * size_of::<u16>();

/// How much larger the file is than the memory that the device may use.
const FILE_PER_MEMORY: usize = 4;

/// Chunks that are also sent one after the other, to compare with.
const COMPARED: usize = 16;

/// The size of the copies whose speed is measured, if the device's memory allows.
const COPY_BYTES_MAX: usize = 64 << 20;

type Outcome<T> = Result<T, Failure>;

/// Why the program ends, in one line, and its exit code.
struct Failure {
    message: String,
    code: u8,
}

impl Failure {
    /// The user's input cannot be used.
    fn input(message: impl Display) -> Self {
        Self { message: message.to_string(), code: 2 }
    }

    /// An operation failed, or the result is wrong.
    fn result(message: impl Display) -> Self {
        Self { message: message.to_string(), code: 1 }
    }
}

impl From<resident::Error> for Failure {
    fn from(error: resident::Error) -> Self {
        Self::result(error)
    }
}

/// A mapped file of samples.
struct Samples(Mmap);

impl AsRef<[u16]> for Samples {
    fn as_ref(&self) -> &[u16] {
        bytemuck::cast_slice(&self.0)
    }
}

/// A folder that is removed when the value drops.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder that stays is no reason to fail.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let outcome = match &words[..] {
        [word] if word == Path::new("--help") => {
            println!("{HELP}");
            Ok(())
        }
        [] => with_new_file(64),
        [word] => megabytes(word).and_then(with_new_file),
        [input, output] => stream(input, output),
        _ => Err(Failure::input("one number or two files are expected; see --help")),
    };
    let Err(Failure { message, code }) = outcome else { return ExitCode::SUCCESS };
    eprintln!("stream_file: {}", message.split_whitespace().collect::<Vec<_>>().join(" "));
    ExitCode::from(code)
}

fn megabytes(word: &Path) -> Outcome<usize> {
    let number = word.to_str().and_then(|text| text.parse().ok());
    number.filter(|number| (1..=1_000_000).contains(number)).ok_or_else(|| {
        Failure::input(format_args!(
            "a number of megabytes from 1 to 1000000, or two files, are expected, not {}; \
             see --help",
            word.display()
        ))
    })
}

/// Makes a file in a temporary folder, and removes both at the end.
fn with_new_file(megabytes: usize) -> Outcome<()> {
    let name = format!("stream_file-{}", std::process::id());
    let folder = Scratch(std::env::temp_dir().join(name));
    let (input, output) = (folder.0.join("input"), folder.0.join("output"));
    let made = std::fs::create_dir(&folder.0).and_then(|()| {
        let mut file = BufWriter::new(File::create(&input)?);
        for row in 0..megabytes * 1_000_000 / ROW_BYTES {
            let number = |column: usize| (row * ROW_LEN + column).wrapping_mul(2_654_435_761);
            let sample = |column| (number(column) >> 16) as u16;
            let samples: Vec<u16> = (0..ROW_LEN).map(sample).collect();
            file.write_all(bytemuck::cast_slice(&samples))?;
        }
        file.flush()
    });
    made.map_err(|error| {
        Failure::result(format_args!("cannot make {}: {error}", input.display()))
    })?;
    stream(&input, &output)
}

fn stream(input: &Path, output: &Path) -> Outcome<()> {
    let (samples, device) = (Arc::new(map(input)?), Device::current()?);
    let len_bytes = samples.0.len();
    let memory_bytes = (len_bytes / FILE_PER_MEMORY).max(MEMORY_BYTES_MIN);
    // Not one that exists: to empty the mapped input, by whatever name, would end the program.
    let file = File::create_new(output).map_err(|error| {
        Failure::input(format_args!("cannot make {}: {error}", output.display()))
    })?;
    device.set_memory_limit(Some(memory_bytes as u64))?;
    let streaming = Streaming::new(&device, memory_bytes)?;
    let speeds = copy_speeds(&device, (memory_bytes / 4).min(COPY_BYTES_MAX))?;
    let one_by_one = one_by_one(&streaming, &samples)?;

    let (before, started) = (device.traffic(), Instant::now());
    write_results(&streaming, &samples, file, output)?;
    let (after, seconds) = (device.traffic(), started.elapsed().as_secs_f64());
    check(&samples, &map(output)?)?;

    let speed = len_bytes as f64 / seconds / 1e9;
    let [to_device, to_host] = speeds.map(|speed| speed / 1e9);
    let chunks = streaming.chunks(len_bytes / ROW_BYTES).len();
    println!("{len_bytes} bytes in {chunks} chunks on {device}, which may use {memory_bytes}");
    println!(
        "moved {} bytes to the device and {} to the host in {seconds:.3} s",
        after.to_device.bytes - before.to_device.bytes,
        after.to_host.bytes - before.to_host.bytes
    );
    println!("overlapped           {speed:7.3} GB/s each way, with writing the results");
    println!("one after the other  {:7.3} GB/s each way", one_by_one / 1e9);
    println!("copies only          {to_device:7.3} GB/s to the device, {to_host:.3} to the host");
    println!("all {} samples are right", len_bytes / size_of::<u16>());
    Ok(())
}

/// Sends all chunks through the kernels, and writes what comes back.
fn write_results(
    streaming: &Streaming,
    samples: &Arc<Samples>,
    mut file: File,
    output: &Path,
) -> Outcome<()> {
    let mut progress = Progress::start(samples.0.len());
    streaming.run(samples, |chunk| {
        let bytes = bytemuck::cast_slice(chunk.as_slice().expect("a new array has no gaps"));
        file.write_all(bytes).map_err(|error| {
            Failure::result(format_args!("cannot write {}: {error}", output.display()))
        })?;
        progress.advance(bytes.len());
        Ok(())
    })
}

fn map(path: &Path) -> Outcome<Samples> {
    let refused = |reason: &dyn Display| {
        Failure::input(format_args!("cannot read {}: {reason}", path.display()))
    };
    let file = File::open(path).map_err(|error| refused(&error))?;
    // SAFETY: the help says that nothing may write the file meanwhile.
    let map = unsafe { Mmap::map(&file) }.map_err(|error| refused(&error))?;
    if map.is_empty() || !map.len().is_multiple_of(ROW_BYTES) {
        let reason = format!("{} bytes are not rows of {ROW_BYTES} bytes", map.len());
        return Err(refused(&reason));
    }
    Ok(Samples(map))
}

/// The bytes per second of copies between pinned memory and the device, to it and from it.
fn copy_speeds(device: &Device, len_bytes: usize) -> resident::Result<[f64; 2]> {
    const COPIES: usize = 4;
    let _here = device.enter();
    let mut pinned = PinnedArray::<u8, _>::zeros(len_bytes)?;
    let mut on_device = DeviceArray::<u8, _>::zeros(len_bytes)?;
    let speed = |copy: &mut dyn FnMut() -> resident::Result<()>| -> resident::Result<f64> {
        copy()?;
        device.synchronize()?;
        let started = Instant::now();
        (0..COPIES).try_for_each(|_| copy())?;
        device.synchronize()?;
        Ok((COPIES * len_bytes) as f64 / started.elapsed().as_secs_f64())
    };
    let to_device = speed(&mut || on_device.copy_from_pinned(&pinned))?;
    let to_host = speed(&mut || on_device.copy_to_pinned(&mut pinned))?;
    Ok([to_device, to_host])
}

/// The bytes per second if each chunk is waited for, and nothing is written.
fn one_by_one(streaming: &Streaming, samples: &Arc<Samples>) -> resident::Result<f64> {
    let (mut len_bytes, started) = (0, Instant::now());
    for rows in streaming.chunks(samples.0.len() / ROW_BYTES).take(COMPARED) {
        len_bytes += rows.len() * ROW_BYTES;
        drop(streaming.queue(samples, rows)?.wait()?);
    }
    Ok(len_bytes as f64 / started.elapsed().as_secs_f64())
}

fn check(input: &Samples, output: &Samples) -> Outcome<()> {
    let (input, output) = (input.as_ref(), output.as_ref());
    if input.len() != output.len() {
        return Err(Failure::result("the files do not have the same length"));
    }
    let rows = input.chunks(ROW_LEN).zip(output.chunks(ROW_LEN));
    match rows.enumerate().find(|(_, (input, output))| !expected(input).eq(output.iter().copied()))
    {
        Some((row, _)) => Err(Failure::result(format_args!("row {row} of the result is wrong"))),
        None => Ok(()),
    }
}
