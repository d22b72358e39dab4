#!/usr/bin/env bash
# Everything that is downloaded, from a clean clone into target/release-VERSION, with the same bytes each time.
#
#   ci/release.sh VERSION               all that this machine can build, and `last`
#   ci/release.sh VERSION NAME...       only these, such as x86_64-linux-static; `deb`, `rpm` from the present build;
#                                       `wheel` for Python, of the archives with the window that are there
#   ci/release.sh VERSION last          checksums of the present files, and manifests if GREBE_DOWNLOADS has its URL
#
# Linux and macOS are linked by zig, which Python's packages have; Windows by mingw-w64. On macOS, its own linker serves.
# The toolchain fetches the targets. Without git, SOURCE_DATE_EPOCH and GREBE_COMMIT say the time and the commit.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

headless=zenoh,mqtt
window=$headless,window,accessibility
# NAME  TARGET  FEATURES
builds="
x86_64-linux-static      x86_64-unknown-linux-musl       $headless
aarch64-linux-static     aarch64-unknown-linux-musl      $headless
x86_64-linux             x86_64-unknown-linux-gnu.2.17   $window
aarch64-linux            aarch64-unknown-linux-gnu.2.17  $window
x86_64-windows           x86_64-pc-windows-gnu           $window
x86_64-windows-headless  x86_64-pc-windows-gnu           $headless
aarch64-macos            aarch64-apple-darwin            $(case $(uname) in Darwin) echo "$window" ;; *) echo "$headless" ;; esac)
x86_64-macos             x86_64-apple-darwin             $(case $(uname) in Darwin) echo "$window" ;; *) echo "$headless" ;; esac)
"

main() {
  [ $# -gt 0 ] || { sed -n '2,11p' "$0"; exit 2; }
  version=$1
  shift
  grep -qx "version = \"$version\"" Cargo.toml || fail "Cargo.toml has another version than $version"
  settle_source
  out=$PWD/target/release-$version
  mkdir -p "$out"
  [ $# -gt 0 ] || set -- $(names) deb rpm wheel last
  local name
  for name in "$@"; do
    case $name in
      deb | rpm | wheel | last) "make_$name" ;;
      *) make_archive "$name" ;;
    esac
  done
}

fail() { echo "ci/release.sh: $*" >&2; exit 1; }

# Targets that this machine can build.
names() {
  case $(uname) in
    Darwin) echo aarch64-macos x86_64-macos ;;
    Linux) echo x86_64-linux-static aarch64-linux-static x86_64-linux aarch64-linux x86_64-windows x86_64-windows-headless ;;
    *) echo x86_64-windows x86_64-windows-headless ;;
  esac
}

# The time and the commit of all that is made.
settle_source() {
  if git rev-parse --git-dir >/dev/null 2>&1; then
    [ -z "$(git status --porcelain)" ] || fail "uncommitted changes: a release is made from a clean clone"
    export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)} GREBE_COMMIT=${GREBE_COMMIT:-$(git rev-parse HEAD)}
  fi
  [ -n "${SOURCE_DATE_EPOCH:-}" ] || fail "no git: set SOURCE_DATE_EPOCH to the time of the source, in seconds"
  export SOURCE_DATE_EPOCH
}

make_archive() {
  local name=$1 row target features binary folder=$out/work/$1/grebe-$version
  row=$(awk -v name="$name" '$1 == name { print $2, $3 }' <<<"$builds")
  [ -n "$row" ] || fail "unknown name: $name"
  read -r target features <<<"$row"
  binary=$(build "$target" "$features")
  rm -rf "$folder" && mkdir -p "$folder/bin"
  cp "$binary" "$folder/bin/"
  cp README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$folder/"
  python3 ci/dependencies.py notices "${target%.2.17}" "$features" >"$folder/NOTICES.txt"
  python3 ci/dependencies.py sbom "${target%.2.17}" "$features" "$version" >"$out/grebe-$version-$name.cdx.json"
  add_pages "$binary" "$folder/share"
  case $name in
    *windows*) python3 ci/release/pack.py "$folder" "$out/grebe-$version-$name.zip" ;;
    *) python3 ci/release/pack.py "$folder" "$out/grebe-$version-$name.tar.xz" ;;
  esac
}

# Builds the command, and prints its path.
build() {
  local plain=${1%.2.17} command=(cargo build)
  case $(uname)-$plain in
    Linux-*linux* | Linux-*darwin*) find_tools && command=(cargo-zigbuild zigbuild) ;;
  esac
  compile "$plain" "${command[@]}" -p grebe-cli --no-default-features --features "$2" --target "$1"
  case $plain in
    *windows*) echo "$PWD/target/dist/$plain/dist/grebe.exe" ;;
    *) echo "$PWD/target/dist/$plain/dist/grebe" ;;
  esac
}

# Runs a build for TARGET in the folder of all releases. No path of this machine is in the result. Paths may contain spaces.
compile() {
  local target=$1 folder flags c_flags
  shift
  rustup target add "$target" >&2
  cargo fetch --locked --quiet # so that the folder of sources is there
  flags=("--remap-path-prefix=$PWD=grebe" "--remap-path-prefix=$(rustc --print sysroot)=rust")
  c_flags=("-ffile-prefix-map=$PWD=grebe")
  for folder in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*; do
    flags+=("--remap-path-prefix=$folder=crates")
    c_flags+=("-ffile-prefix-map=$folder=crates")
  done
  CARGO_ENCODED_RUSTFLAGS=$(IFS=$'\x1f' && echo "${flags[*]}") CC_SHELL_ESCAPED_FLAGS=1 CFLAGS=$(printf '%q ' "${c_flags[@]}") \
    CARGO_TARGET_DIR=$PWD/target/dist CARGO_INCREMENTAL=0 "$@" --locked --profile dist >&2
}

find_tools() {
  local tools=$PWD/target/ci/zig
  [ -x "$tools/bin/maturin" ] || {
    python3 -m venv "$tools" >&2
    "$tools/bin/pip" install --quiet --disable-pip-version-check --retries 5 \
      cargo-zigbuild==0.24.0 maturin==1.16.0 ziglang==0.17.0 >&2
  }
  export PATH=$tools/bin:$PATH
}

# The module for Python 3.11 and newer, with the command inside.
make_wheel() {
  local name target
  for name in x86_64-linux aarch64-linux aarch64-macos x86_64-macos; do
    [ -d "$out/work/$name" ] || continue
    target=$(awk -v name="$name" '$1 == name { print $2 }' <<<"$builds")
    find_tools
    case $name in
      *linux) set -- --zig --compatibility manylinux2014 ;;
      *) set -- ;;
    esac
    compile "${target%.2.17}" maturin build --quiet --manifest-path python/Cargo.toml --target "${target%.2.17}" \
      --features grebe-cli/mqtt,grebe-cli/accessibility --out "$out" "$@"
  done
}

# Manual pages and completions, written by the command; by the static one, where this machine cannot run it.
add_pages() {
  local command=$1 share=$2
  "$command" -V >/dev/null 2>&1 || command=$(build x86_64-unknown-linux-musl "$headless")
  mkdir -p "$share"/{man/man1,bash-completion/completions,zsh/site-functions,fish/vendor_completions.d,powershell}
  "$command" man --all "$share/man/man1"
  "$command" completions bash >"$share/bash-completion/completions/grebe"
  "$command" completions zsh >"$share/zsh/site-functions/_grebe"
  "$command" completions fish >"$share/fish/vendor_completions.d/grebe.fish"
  "$command" completions powershell >"$share/powershell/grebe.ps1"
}

# Packages with the window, from the archives: glibc 2.17 is older than every system that has them.
make_deb() {
  local name arch root
  for name in x86_64-linux aarch64-linux; do
    [ -d "$out/work/$name" ] || continue
    case $name in x86*) arch=amd64 ;; *) arch=arm64 ;; esac
    root=$out/work/$name/deb
    lay_out "$name" "$root"
    mkdir -p "$root/DEBIAN"
    sed -e "s/@VERSION@/$version/" -e "s/@ARCH@/$arch/" -e "s/@KB@/$(du -sk --apparent-size "$root/usr" | cut -f1)/" \
      ci/release/control >"$root/DEBIAN/control"
    dpkg-deb --root-owner-group -Zxz --build "$root" "$out/grebe_${version}_$arch.deb"
  done
}

make_rpm() {
  local name arch root
  command -v rpmbuild >/dev/null || { echo "skipped: no rpmbuild (Debian: apt-get install rpm)"; return 0; }
  for name in x86_64-linux aarch64-linux; do
    [ -d "$out/work/$name" ] || continue
    arch=${name%-linux}
    root=$out/work/$name/rpm
    lay_out "$name" "$root"
    rpmbuild -bb --quiet --target "$arch" --define "_topdir $out/work/$name/rpmbuild" --define "_rpmdir $out" \
      --define "_rpmfilename grebe-%{version}-1.%{_arch}.rpm" --define "source $root" --define "grebe_version $version" \
      --define "_buildhost grebe" --define "use_source_date_epoch_as_buildtime 1" --define "clamp_mtime_to_source_date_epoch 1" \
      ci/release/grebe.spec
  done
}

# The files of an archive as a system has them, under ROOT/usr.
lay_out() {
  local from=$out/work/$1/grebe-$version root=$2
  rm -rf "$root"
  mkdir -p "$root/usr/share/doc/grebe"
  cp -r "$from/bin" "$from/share" "$root/usr/"
  rm -r "$root/usr/share/powershell"
  gzip -n9 "$root"/usr/share/man/man1/*.1
  cp "$from"/{README.md,CHANGELOG.md,LICENSE-MIT,LICENSE-APACHE} "$root/usr/share/doc/grebe/"
  gzip -n9c "$from/NOTICES.txt" >"$root/usr/share/doc/grebe/NOTICES.txt.gz"
  cp ci/release/copyright "$root/usr/share/doc/grebe/copyright"
  find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
  chmod -R u=rwX,go=rX "$root"
}

make_last() {
  (
    cd "$out"
    rm -f SHA256SUMS
    LC_ALL=C sha256sum $(LC_ALL=C ls | grep -E '\.(tar\.xz|zip|deb|rpm|whl|cdx\.json)$') >SHA256SUMS
  )
  sed "s/@VERSION@/$version/" ci/release/Dockerfile >"$out/Dockerfile"
  python3 ci/release/manifests.py "$version" "$out"
  ls -l "$out"
}

main "$@"
