//! The browser's page: plain modules, embedded as they are in `page/`.

/// The type and the bytes of a file, by the requested path; `/` is the page itself.
pub(crate) fn file(path: &str) -> Option<(&'static str, &'static [u8])> {
    let name = path.strip_prefix('/')?;
    let name = if name.is_empty() { "index.html" } else { name };
    let (name, bytes) = FILES.iter().find(|(known, _)| *known == name)?;
    let (_, ending) = name.rsplit_once('.')?;
    let kind = TYPES.iter().find(|(known, _)| *known == ending)?.1;
    Some((kind, bytes))
}

const TYPES: [(&str, &str); 4] = [
    ("html", "text/html; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("svg", "image/svg+xml"),
];

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_bytes!(concat!("page/", $name)))),*]
    };
}

const FILES: &[(&str, &[u8])] = &files![
    "index.html",
    "style.css",
    "icon.svg",
    "main.js",
    "data/bytes.js",
    "data/columns.js",
    "data/connection.js",
    "data/picture.js",
    "data/pieces.js",
    "data/shown.js",
    "data/wire.js",
    "draw/density.js",
    "draw/lanes.js",
    "draw/overview.js",
    "draw/pen.js",
    "draw/plot.js",
    "draw/spectrum.js",
    "draw/theme.js",
    "embed.js",
    "ui/canvas.js",
    "ui/dialogs.js",
    "ui/dom.js",
    "ui/frame.js",
    "ui/player.js",
    "ui/pointer.js",
    "ui/scope.js",
    "ui/widgets.js",
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use super::*;

    fn text(name: &str) -> &'static str {
        let bytes = FILES.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("{name}")).1;
        std::str::from_utf8(bytes).unwrap()
    }

    fn modules() -> impl Iterator<Item = &'static str> {
        FILES.iter().map(|(name, _)| *name).filter(|name| name.ends_with(".js"))
    }

    /// The imports of a module, as names in the page's folder.
    fn imports(module: &str) -> Vec<String> {
        let of = |line: &str| {
            let path = line.strip_suffix("\";")?.rsplit_once("from \"")?.1.to_owned();
            let mut folder: Vec<&str> = module.split('/').collect();
            folder.pop();
            for step in path.split('/') {
                match step {
                    "." => {}
                    ".." => drop(folder.pop()),
                    name => folder.push(name),
                }
            }
            Some(folder.join("/"))
        };
        text(module).lines().filter(|line| !line.trim_start().starts_with('*')).filter_map(of).collect()
    }

    #[test]
    fn every_file_of_the_folder_is_served_by_its_type() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/page");
        let mut found = BTreeSet::new();
        let mut folders: Vec<PathBuf> = vec![folder.clone()];
        while let Some(next) = folders.pop() {
            for entry in next.read_dir().unwrap().map(|entry| entry.unwrap().path()) {
                if entry.is_dir() {
                    folders.push(entry);
                } else {
                    let name = entry.strip_prefix(&folder).unwrap().to_str().unwrap();
                    found.insert(name.replace(std::path::MAIN_SEPARATOR, "/"));
                }
            }
        }
        // For the type checker only.
        found.remove("tsconfig.json");
        assert_eq!(found, FILES.iter().map(|(name, _)| (*name).to_owned()).collect());
        for name in &found {
            assert!(file(&format!("/{name}")).is_some(), "{name}");
        }
        assert_eq!(file("/").unwrap(), file("/index.html").unwrap());
        assert_eq!(file("/main.js").unwrap().0, "text/javascript; charset=utf-8");
        for path in ["", "/no", "main.js", "/../page.rs", "//main.js", "/data", "/tsconfig.json"] {
            assert!(file(path).is_none(), "{path}");
        }
    }

    #[test]
    fn every_module_that_is_imported_is_there_and_loads_at_once() {
        for module in modules() {
            for import in imports(module) {
                assert!(FILES.iter().any(|(name, _)| *name == import), "{module} imports {import}");
            }
        }
        assert_eq!(imports("ui/canvas.js"), ["ui/dom.js"]);
        // A chain of imports would cost a round trip each.
        let page = text("index.html");
        for module in modules().filter(|module| *module != "main.js") {
            assert!(page.contains(&format!("<link rel=\"modulepreload\" href=\"{module}\">")), "{module}");
        }
    }

    #[test]
    fn the_page_is_small_and_asks_nobody_else() {
        let bytes: usize = FILES.iter().map(|(_, bytes)| bytes.len()).sum();
        assert!(bytes <= 300_000, "{bytes} bytes");
        for (name, _) in FILES.iter().filter(|(name, _)| *name != "icon.svg") {
            let text = text(name);
            for foreign in ["http://", "https://", "innerHTML", "eval(", "<script>", "style=\"", "onclick="] {
                // An example of a server's address, in a comment.
                let is_example = foreign == "http://" && text.contains("as `http://lab:8080/`");
                assert!(is_example || !text.contains(foreign), "{name} has {foreign}");
            }
        }
    }
}
