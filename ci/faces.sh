#!/usr/bin/env bash
# The three faces of the scope, each looked at from outside: the demonstration in a terminal and in a window, a
# recording as a picture. Their output stays in target/ci.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. ci/checks.sh
. ci/terminal.sh
need_grebe

clean_up() { close_terminal; }

# --- the terminal ----------------------------------------------------------------------------------------------
demo_in_terminal() {  # KEY: runs until the key is pressed
  local generator
  close_terminal
  rm -f "$work/status"
  open_terminal "sh -c 'echo \$\$ >$work/pid; unset DISPLAY WAYLAND_DISPLAY; exec $grebe 2>$work/term.err'
                 echo \$? >$work/status; sleep 60" || return 1
  wait_for 10 shows LIVE || { screen; cat "$work/term.err"; echo "never live"; return 1; }
  shows_four_moving_channels || { screen; return 1; }
  generator=$(generator_of "$(cat "$work/pid")") || { echo "the demonstration has no generator process"; return 1; }
  screen >"$kept/terminal.txt"
  lost_nothing >"$work/nothing-lost" || true
  press "$1"
  wait_for 5 test -s "$work/status" || { screen; echo "does not end on $1"; return 1; }
  # Ctrl-C is a key like q to a program that draws on the terminal.
  grep -qxE '0|130' "$work/status" || { cat "$work/term.err"; echo "exit status $(cat "$work/status")"; return 1; }
  wait_for 5 is_gone "$generator" || { echo "a generator outlived its scope"; return 1; }
}

# A machine that is busy with something else loses frames; one that is not must show a run without.
demo_without_loss() {
  local try
  for try in 1 2 3; do
    demo_in_terminal q || return 1
    [ ! -s "$work/nothing-lost" ] || return 0
  done
  cat "$kept/terminal.txt"
  echo "lost something in each of $try runs"
  return 1
}

generator_of() { pgrep -P "$1" -f -- ' sg .*--(remote|tethered)'; }

demo_whose_terminal_goes_away() {
  local demo generator
  open_terminal "sh -c 'echo \$\$ >$work/pid; unset DISPLAY WAYLAND_DISPLAY; exec $grebe'" || return 1
  wait_for 10 shows LIVE || { screen; return 1; }
  demo=$(cat "$work/pid")
  generator=$(generator_of "$demo") || return 1
  in_terminal kill-server
  wait_for 5 is_gone "$generator" || { echo "the generator goes on"; kill -KILL "$generator" "$demo"; return 1; }
  wait_for 5 is_gone "$demo" || { echo "the scope goes on"; kill -KILL "$demo"; return 1; }
}

# --- the window ------------------------------------------------------------------------------------------------
demo_in_window() {
  local display server demo generator status=0
  Xvfb -displayfd 7 -screen 0 1280x720x24 -nolisten tcp 7>"$work/display" 2>"$work/xvfb.log" &
  server=$!
  wait_for 10 test -s "$work/display" || { cat "$work/xvfb.log"; return 1; }
  display=:$(cat "$work/display")
  env -u WAYLAND_DISPLAY DISPLAY="$display" "$grebe" >"$work/window.log" 2>&1 &
  demo=$!
  sleep 8
  kill -0 "$demo" 2>/dev/null || { cat "$work/window.log"; echo "the window closed by itself"; return 1; }
  generator=$(generator_of "$demo") || { echo "the demonstration has no generator process"; return 1; }
  DISPLAY=$display import -window root "$kept/window.png" || return 1
  sleep 1
  DISPLAY=$display import -window root "$work/later.png" || return 1
  kill -INT "$demo"
  wait "$demo" || status=$?
  kill "$server"
  ! grep -q "no window" "$work/window.log" || { cat "$work/window.log"; return 1; }
  [ "$status" -eq 130 ] || { cat "$work/window.log"; echo "exit status $status after an interrupt, not 130"; return 1; }
  is_drawn "$kept/window.png" || return 1
  ! cmp -s "$kept/window.png" "$work/later.png" || { echo "the picture stands still"; return 1; }
  wait_for 5 is_gone "$generator" || { echo "a generator outlived its scope"; return 1; }
}

# A blank picture has one colour; antialiased traces and text have hundreds.
is_drawn() {
  local colours
  colours=$(identify -format %k "$1") || return 1
  [ "$colours" -ge 32 ] || { echo "$1 has $colours colours"; return 1; }
}

picture() {
  "$grebe" view examples/data/ecg.sigmf-meta --span 5s --png "$kept/picture.png" && is_drawn "$kept/picture.png"
}

check "a recording as a picture" picture
check "the demonstration in a terminal: four channels move, nothing lost" demo_without_loss
check "... ends with Ctrl-C" demo_in_terminal C-c
check "... ends with its terminal" demo_whose_terminal_goes_away
check "the demonstration in a window" demo_in_window
sum_up
