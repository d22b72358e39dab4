//! Recordings of sampled signals: read, played, written, kept in rings, summarised, checked and repaired.
//!
//! ```
//! use grebe_recording::{SampleFile, SigmfSettings, SigmfWriter};
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("tone.sigmf-meta");
//! let settings = SigmfSettings { channels: 1, sample_rate_hz: 48_000.0, ..SigmfSettings::default() };
//! let mut writer = SigmfWriter::create(&path, &settings)?;
//! writer.write(0, &[&[1i16, 2, 3]])?;
//! writer.finish()?;
//! assert_eq!(SampleFile::open(&path)?.block(0, 3)?.channel::<i16>(0)?.into_owned(), [1, 2, 3]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`SigmfSink`] records a stream and [`FileSource`] plays a recording as stages of a graph. A new format is a row of `Kind` and a
//! module beside `wav`; the compiler names the rest.
#![deny(unsafe_code)]

mod annotation_fields;
mod arrays;
mod band_cut;
mod bytes;
mod csv;
mod disk;
mod encoding;
mod error;
mod flac;
mod folder;
mod formats;
mod headerless;
mod hexadecimal;
mod kinds;
mod label_file;
mod labels;
mod matlab;
mod name_facts;
mod npy;
mod npz;
mod output;
mod path_query;
mod play;
mod raw;
mod read_ahead;
mod receiver_file;
mod record;
mod repaired;
mod repeated_labels;
mod ring;
mod rotate;
mod said;
mod sample_file;
mod save_as;
mod sigmf;
mod sigrok;
mod summary;
pub mod table;
mod unpacked;
mod wav;
mod xml_attribute;

pub use {
    band_cut::{BandCut, BoxCut, CutBox},
    csv::{CsvOptions, CsvWriter, ImportedCsv, import_csv},
    disk::{DiskMeasure, DiskReport, WriteMethod, measure_disk},
    encoding::{Encoding, Order},
    error::Error,
    folder::newest_recording,
    grebe_frame::AnnotationEdit,
    grebe_ring::Cancel,
    kinds::{is_csv, is_recording, is_table},
    label_file::{LabelFile, ReadLabels},
    output::write_whole,
    play::{FileSource, PlayOptions, Schedule},
    record::{LeftOut, RecordOptions, SigmfSink},
    repaired::Repaired,
    ring::{
        RingLabel, RingLength, RingPlan, RingSaved, RingStretch, make_folder as make_ring_folder,
        ring_part_paths, ring_parts, save_ring,
    },
    rotate::Rotate,
    sample_file::{Alignment, Annotation, AnnotationsEdited, Block, ClockGap, Gap, SampleFile, Segment},
    save_as::{GapPolicy, SaveOptions},
    sigmf::{BegunSet, RecordingSet, SigmfSettings, SigmfSummary, SigmfWriter, Verified, repair, verify},
    summary::{Extremes, LevelSums, SpectralRow, SpectralSummary, SummarizedFile, Summary, SummaryState},
};
