#!/usr/bin/env bash
# Installs the needs of the other steps: Debian packages, an independent SigMF validator, SciPy, mdBook, the crates of Cargo.lock.
# Building and running grebe needs none of it but gcc.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

packages=(
  gcc libc6-dev
  g++                                                             # libFuzzer is C++
  libx11-6 libx11-xcb1 libxcursor1 libxi6 libxkbcommon-x11-0      # the window opens these at run time
  libvulkan1 mesa-vulkan-drivers libegl1 libgl1-mesa-dri          # software Vulkan and GL
  xvfb imagemagick tmux procps                                    # a display, its picture, a terminal, pgrep
  libsoapysdr-dev soapysdr-tools                                  # a radio of our own behind SoapySDR
  soapyremote-server soapysdr0.8-module-remote dbus-daemon        # and the same from another host
  python3 python3-venv                                            # for the SigMF validator and SciPy
  gnuradio gr-osmosdr                                             # reads what grebe writes, and the other way around
  tshark                                                          # its dissector of VITA-49
  chromium                                                        # drives the page of grebe serve
  openssh-client openssh-server                                   # grebe cp between machines
  ntfs-3g exfat-fuse exfatprogs                                   # and to volumes without owners and case
  iproute2 nftables                                               # links that go down, firewalls that refuse
  mosquitto                                                       # a broker for mqtt://
  valgrind                                                        # Python's arrays of memory that nobody has
)
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "every package is there"
elif [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  echo "skipped: installing ${missing[*]}: this needs root and apt-get; steps that miss them will say so"
else
  echo "installing ${missing[*]}"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null
fi
command -v cargo >/dev/null || { echo "no cargo: install the Rust toolchain, 1.95 or newer"; exit 1; }
rustc --version
cargo fetch --locked

# A SigMF validator, SciPy to measure grebe's generator, the parser of Prometheus' client, and another Zenoh implementation.
validator=target/ci/venv
if ! "$validator/bin/python" -c "import prometheus_client, scipy, sigmf, zenoh" 2>/dev/null; then
  python3 -m venv "$validator"
  "$validator/bin/pip" install --quiet --retries 5 eclipse-zenoh==1.10.2 prometheus-client==0.26.0 sigmf==1.14.0 scipy==1.17.1
fi
"$validator/bin/sigmf_validate" --version

# The builder of the book of docs/, without its server: about a minute of two processors.
if ! command -v mdbook >/dev/null && [ ! -x target/ci/mdbook/bin/mdbook ]; then
  CARGO_PROFILE_RELEASE_OPT_LEVEL=0 cargo install --quiet --locked --no-default-features --root target/ci/mdbook mdbook@0.5.4 ||
    echo "skipped: mdbook could not be installed"
fi

# Types of the page's modules, where there is npm; nothing is built with it.
if command -v npm >/dev/null && [ ! -x target/ci/node/node_modules/.bin/tsc ]; then
  npm install --silent --no-audit --no-fund --prefix target/ci/node typescript@5.9.3 >/dev/null
fi
