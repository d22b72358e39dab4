//! `--bootstrap` to hosts that lack a Unix shell or `uname`. A script stands in for `ssh`.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;

use super::{Ended, path};
use crate::support::trees::{file, noise};
use crate::support::{finish, grebe, program};

/// Writes the script: `line` runs what is in `$line`, a line for the remote shell.
fn ssh(folder: &Path, line: &str) -> String {
    let script = folder.join("ssh by hand");
    let heads = "case \" $* \" in *\" -G \"*) echo hostname 127.0.0.1; exit 0;; esac\nfor line; do :; done";
    fs::write(&script, format!("#!/bin/sh\n{heads}\n{line}\n")).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).unwrap();
    format!("'{}'", script.display())
}

/// Copies a file to the host `lab`, where grebe has the name `program`.
fn copy(folder: &Path, ssh: &str, program: &str) -> Ended {
    let (from, to) = (folder.join("from"), format!("lab:{}", folder.join("to").display()));
    let own = ["cp", "--no-config", "--bootstrap", "--ssh", ssh, "--remote-path", program];
    let command = [&own[..], &[path(&from), &to]].concat();
    Ended::of(&finish(grebe(&command).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()))
}

#[test]
fn shells_of_windows_start_an_installed_grebe_and_are_named_otherwise() {
    let answers: [(&str, &[u8]); 5] = [
        ("cmd", b"'WORD' is not recognized as an internal or external command,\r\noperable program or batch file.\r\n"),
        ("cmd in German", b"Der Befehl \"WORD\" ist entweder falsch geschrieben oder\r\nkonnte nicht gefunden werden.\r\n"),
        (
            "PowerShell 5",
            b"WORD : The term 'WORD' is not recognized as the name of a cmdlet, function, script file, or operable program.\r\n\
              At line:1 char:1\r\n+ WORD ...\r\n+ ~~~~\r\n    + CategoryInfo          : ObjectNotFound: (WORD:String) [], \r\n\
              \x20   + FullyQualifiedErrorId : CommandNotFoundException\r\n \r\n",
        ),
        ("PowerShell 5 in French", b"WORD : Le terme \xae\xffWORD\xff\xaf n'est pas reconnu comme nom d'applet de commande\r\n"),
        ("PowerShell 7", b"WORD: The term 'WORD' is not recognized as a name of a cmdlet.\nCheck the spelling of the name.\n"),
    ];
    for (shell, answer) in answers {
        let folder = tempfile::tempdir().unwrap();
        file(&folder.path().join("from"), &noise(100_000, 1), 1);
        let words = folder.path().join("words");
        fs::write(&words, answer).unwrap();
        let ssh = ssh(
            folder.path(),
            &format!(
                "word=${{line%% *}}\n[ \"$word\" = exec ] || [ ! -x \"$word\" ] || exec sh -c \"$line\"\n\
                 LC_ALL=C sed \"s|WORD|$word|g\" '{}' >&2\nexit 1",
                words.display()
            ),
        );
        let ended = copy(folder.path(), &ssh, "/nowhere/grebe");
        assert_eq!(ended.status, Some(1), "{shell}: {}", ended.said);
        for words in
            ["--bootstrap cannot install grebe on lab", "not a Unix shell", "install grebe ", "--remote-path"]
        {
            assert!(ended.said.contains(words), "{shell}: {}", ended.said);
        }
        let ended = copy(folder.path(), &ssh, &program());
        assert_eq!(ended.status, Some(0), "{shell}: {}", ended.said);
        assert_eq!(fs::read(folder.path().join("to")).unwrap(), noise(100_000, 1), "{shell}");
    }
}

#[test]
fn a_host_without_uname_is_not_installed_on() {
    let folder = tempfile::tempdir().unwrap();
    file(&folder.path().join("from"), b"contents", 1);
    let programs = folder.path().join("programs");
    fs::create_dir(&programs).unwrap();
    for name in ["sh", "mkdir", "cat", "wc", "rm", "mv", "chmod"] {
        symlink(Path::new("/bin").join(name), programs.join(name)).unwrap();
    }
    let line =
        format!("PATH='{}' HOME='{}' exec sh -c \"$line\"", programs.display(), folder.path().display());
    let ended = copy(folder.path(), &ssh(folder.path(), &line), "/nowhere/grebe");
    assert_eq!(ended.status, Some(1), "{}", ended.said);
    assert!(
        ended.said.contains("lab is a system without uname") && ended.said.contains("install grebe for it"),
        "{}",
        ended.said
    );
    assert!(!folder.path().join(".cache").exists(), "it installed something");
}
