//! The options of `grebe annotate`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args};

use crate::units;

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("change").args(["add", "edit", "delete", "import", "export"])))]
#[command(after_help = "Examples:\n  \
    grebe annotate take.sigmf-meta\n  \
    grebe annotate take.sigmf-meta --add burst --start 1.5s --duration 20ms --band 433.9M..434.1M\n  \
    grebe annotate take.wav --add click --position 48000\n  \
    grebe annotate take.sigmf-meta --edit 3 --label 'door opens' --color '#ff8800'\n  \
    grebe annotate take.sigmf-meta --delete 4,7\n  \
    grebe annotate take.wav --import labels.txt\n  \
    grebe annotate take.sigmf-meta --export labels.csv\n  \
    grebe annotate take.sigmf-meta --find door --json | jq .start_s\n\n\
    SigMF recordings keep annotations in their metadata; the other metadata stays unchanged. For other files, and for read-only metadata, \
    annotations are in NAME.sigmf-annotations beside the recording. grebe reads this file whenever it reads the recording.\n\
    Label files: .csv, .txt (Audacity), .sigmf-meta; their times count the signal, gaps included.")]
pub(crate) struct Annotate {
    /// Recording: SigMF, .wav, .npy or raw (x.cu8?rate=2.4M).
    pub(crate) file: PathBuf,
    /// Add an annotation with this label.
    #[arg(long, value_name = "LABEL", help_heading = "Changes")]
    pub(crate) add: Option<String>,
    /// Edit the annotation of this number in the list.
    #[arg(long, value_name = "N", help_heading = "Changes", value_parser = units::count)]
    pub(crate) edit: Option<u64>,
    /// Delete the annotations of these numbers in the list: 4,7.
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "Changes", value_parser = units::count)]
    pub(crate) delete: Vec<u64>,
    /// Add the annotations of a file: .csv, .txt (Audacity), .sigmf-meta.
    #[arg(long, value_name = "FILE", help_heading = "Changes")]
    pub(crate) import: Option<PathBuf>,
    /// Write the list to a file: .csv, .txt (Audacity), .sigmf-annotations.
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(crate) export: Option<PathBuf>,
    /// Start, as a time of the signal: 90s, 1.5ms.
    #[arg(long, value_name = "TIME", help_heading = "Annotation", value_parser = units::duration, conflicts_with = "position")]
    pub(crate) start: Option<Duration>,
    /// Length: 20ms [default: a point].
    #[arg(short = 'd', long, value_name = "TIME", help_heading = "Annotation", value_parser = units::duration, conflicts_with = "samples")]
    pub(crate) duration: Option<Duration>,
    /// Start, as a sample of the file, from 0.
    #[arg(long, value_name = "N", help_heading = "Annotation", value_parser = units::count)]
    pub(crate) position: Option<u64>,
    /// Length in samples.
    #[arg(long, value_name = "N", help_heading = "Annotation", value_parser = units::count)]
    pub(crate) samples: Option<u64>,
    /// Frequency range in Hz: 433.9M..434.1M.
    #[arg(long, value_name = "FROM..TO", help_heading = "Annotation", value_parser = units::band_hz, allow_hyphen_values = true)]
    pub(crate) band: Option<(f64, f64)>,
    /// New label; an empty one removes it.
    #[arg(long, value_name = "TEXT", help_heading = "Annotation", requires = "edit")]
    pub(crate) label: Option<String>,
    /// Comment; an empty one removes it.
    #[arg(long, value_name = "TEXT", help_heading = "Annotation")]
    pub(crate) comment: Option<String>,
    /// Colour: #rrggbb; an empty one removes it.
    #[arg(long, value_name = "COLOR", help_heading = "Annotation", value_parser = color)]
    pub(crate) color: Option<String>,
    /// List only annotations with these words in label or comment.
    #[arg(long, value_name = "WORDS", help_heading = "Results", conflicts_with = "change")]
    pub(crate) find: Option<String>,
    /// Print CSV with a header line.
    #[arg(long, help_heading = "Results", conflicts_with_all = ["json", "change"])]
    pub(crate) csv: bool,
    /// Print one line of JSON per annotation.
    #[arg(long, help_heading = "Results", conflicts_with = "change")]
    pub(crate) json: bool,
    /// Replace an existing file of --export.
    #[arg(long, help_heading = "Results", requires = "export")]
    pub(crate) overwrite: bool,
}

fn color(text: &str) -> Result<String, String> {
    let digits = text.strip_prefix('#').unwrap_or_default();
    let is_color = digits.len() == 6 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    match is_color || text.is_empty() {
        true => Ok(text.to_ascii_lowercase()),
        false => Err(format!("invalid color {text:?}: give #rrggbb, for example #ff8800")),
    }
}
