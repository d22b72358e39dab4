# Sourced after checks.sh: a terminal of 140 by 42 that a script reads, and the expected content of the demonstration.

terminal=0 # a name of its own for each: the last one may still be closing
in_terminal() { tmux -L "grebe-ci-$$-$terminal" -f /dev/null "$@"; }
open_terminal() { terminal=$((terminal + 1)) && in_terminal new-session -d -x 140 -y 42 "$1"; }
# With all its processes, even those that ignore a hang-up.
close_terminal() {
  local leader
  leader=$(in_terminal list-panes -F '#{pane_pid}' 2>/dev/null) || return 0
  kill -KILL -- "-$leader" || true
  in_terminal kill-server 2>/dev/null || true
}
press() { in_terminal send-keys "$1"; }
screen() { in_terminal capture-pane -p; }
shows() { screen | grep -q -- "$1"; }

# Four channels, each with a trace; a trigger holds at most one of them still.
shows_four_moving_channels() {
  local moment channel still=0
  shows "4 × 25 MS/s" || { echo "not the demonstration's stream"; return 1; }
  for moment in 1 2 3 4 5 6; do
    screen >"$work/moment-$moment"
    sleep 0.3
  done
  for channel in 1 2 3 4; do
    lane "$channel" <"$work/moment-1" | grep -qP '[\x{2801}-\x{28ff}]' || { echo "channel $channel has no trace"; return 1; }
    for moment in 1 2 3 4 5 6; do lane "$channel" <"$work/moment-$moment" | sha256sum; done | sort -u >"$work/lane"
    [ "$(wc -l <"$work/lane")" -gt 1 ] || still=$((still + 1))
  done
  [ "$still" -le 1 ] || { echo "$still channels stand still"; return 1; }
}

# The lines of one channel, out of a screen.
lane() { awk -v name="CH$1" '/CH[0-9]/ { mine = index($0, name) } / ms$/ || /quit$/ { mine = 0 } mine'; }

# All four places of loss at zero, on the screen that is shown.
lost_nothing() { screen | grep -E 'generator 0\b.*network 0\b.*kernel 0\b.*queue 0\b'; }
