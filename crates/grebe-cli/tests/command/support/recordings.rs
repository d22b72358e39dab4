//! Recordings of a generator's saw, and disks that are small.

use std::process::Command;

use grebe::recording::SampleFile;

/// Every sample of the generator's saw stands at its index.
pub(crate) fn check_saw(file: &mut SampleFile) {
    const PERIOD: usize = 2_500;
    let whole = file.segments().iter().find(|segment| segment.length_samples >= PERIOD as u64).copied();
    let Some(whole) = whole else { return };
    let mut period = file.block(whole.position, PERIOD).unwrap().channel::<i16>(0).unwrap().to_vec();
    assert!(period.iter().min() < period.iter().max());
    period.rotate_right((whole.first_sample_index % PERIOD as u64) as usize);
    for segment in file.segments().to_vec() {
        let mut at = 0;
        while at < segment.length_samples {
            let length = (segment.length_samples - at).min(100_000);
            let samples = file.block(segment.position + at, length as usize).unwrap();
            let index = segment.first_sample_index + at;
            let samples = samples.channel::<i16>(0).unwrap();
            let expected = (index..).map(|index| period[(index % PERIOD as u64) as usize]);
            assert!(samples.iter().copied().eq(expected.take(length as usize)), "near sample {index}");
            at += length;
        }
    }
}

/// A file system of 24 MiB, until it is dropped; `None` if this user may not mount one.
pub(crate) struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    pub(crate) fn mount() -> Option<Self> {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let (image, at) = (folder.path().join("image"), folder.path().join("disk"));
        std::fs::create_dir(&at).unwrap();
        std::fs::File::create(&image).unwrap().set_len(24 << 20).unwrap();
        let did = |program: &str, arguments: &[&str]| {
            Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
        };
        let (image, at) = (image.to_str().unwrap(), at.to_str().unwrap());
        // Without blocks that only root may use, or the test would not see what users do.
        (did("mkfs.ext4", &["-q", "-m", "0", image]) && did("mount", &["-o", "loop", image, at]))
            .then_some(Self(folder))
    }

    pub(crate) fn path(&self) -> std::path::PathBuf {
        self.0.path().join("disk")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.path()).status();
    }
}
