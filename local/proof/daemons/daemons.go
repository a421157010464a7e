//go:build unix

// Package daemons has programs that try to outlive the program that starts them. Tests use them
// to check that all processes of a run end.
package daemons

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// commands maps names to shell commands that start a daemon. $BEGIN is a file that the daemon
// creates. $MARK is the argument by which Alive finds it.
var commands = map[string]string{
	"background":     `sh -c "$DAEMON" &`,
	"nohup":          `nohup sh -c "$DAEMON" >/dev/null 2>&1 &`,
	"setsid":         `setsid sh -c "$DAEMON" &`,
	"double fork":    `(setsid sh -c 'sh -c "$DAEMON" &' &) `,
	"no environment": `(setsid env -i DAEMON="$DAEMON" BEGIN="$BEGIN" MARK="$MARK" sh -c 'sh -c "$DAEMON" &' &)`,
	"ignores SIGTERM": `(trap "" TERM HUP INT; setsid sh -c "$DAEMON" &)
		(trap "" TERM HUP INT; sh -c "$DAEMON" &)`,
	"stopped": `setsid sh -c "$DAEMON" & stopped=$!; while [ ! -e "$BEGIN" ]; do sleep 0.01; done; kill -STOP $stopped`,
	"loop":    `setsid sh -c 'i=0; while [ $i -lt 400 ]; do setsid sh -c "$DAEMON" & i=$((i+1)); done; wait' $MARK &`,
	"hopping": `export HOP='hop() { n=$((n+1)); [ $n -lt 900 ] || exec sh -c "$HOP" hop $MARK; : >"$BEGIN"; (hop) & exit; }; hop'
		setsid sh -c "$HOP" hop $MARK 2>/dev/null &`, // a shell nests at most 1000 calls, and processes may run out
	"pipes": `setsid sh -c "$DAEMON" | setsid sh -c "$DAEMON" | cat &`,
}

// Names returns the ways in which a daemon starts.
func Names() (names []string) {
	for name := range commands {
		names = append(names, name)
	}
	return names
}

// Daemon is a daemon started by a test.
type Daemon struct {
	name, mark, begin string
}

// New returns a daemon. At the end of the test all of its processes are killed.
func New(t *testing.T, name string) Daemon {
	t.Helper()
	return Daemon{name, NewMark(t), filepath.Join(t.TempDir(), "begun")}
}

// NewMark returns a mark for Alive. At the end of the test all processes with it are killed.
func NewMark(t *testing.T) string {
	t.Helper()
	mark := fmt.Sprintf("%d.%d", 100_000+rand.IntN(900_000), os.Getpid())
	t.Cleanup(func() {
		for range 1000 { // one pass may miss a process that forks
			alive := Alive(mark)
			for _, pid := range alive {
				if process, err := os.FindProcess(pid); err == nil {
					_ = process.Kill()
				}
			}
			if len(alive) == 0 {
				return
			}
		}
	})
	return mark
}

// StartAll starts a daemon in every way and returns when all of them run. It needs the programs
// in Tools.
func StartAll(mark string) error {
	dir, err := os.MkdirTemp("", "daemons")
	if err != nil {
		return err
	}
	for name := range commands {
		d := Daemon{name, mark, filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))}
		c := exec.Command("/bin/sh", "-c", d.Script("")) //nolint:noctx // it ends with the program that calls it
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		if err := c.Run(); err != nil {
			return fmt.Errorf("cannot start the daemon %q: %w", name, err)
		}
	}
	return nil
}

// Tools returns the programs that the commands call.
func Tools() []string { return []string{"cat", "env", "nohup", "setsid", "sh", "sleep"} }

// Script returns a shell script that starts the daemon, waits until it runs, and then runs the
// commands in then.
func (d Daemon) Script(then string) string {
	return fmt.Sprintf(`export MARK=%s BEGIN=%s DAEMON=': >"$BEGIN"; exec sleep $MARK'
%s
while [ ! -e "$BEGIN" ]; do sleep 0.01; done
%s`, d.mark, d.begin, commands[d.name], then)
}

// Begin is the file that exists once the daemon runs.
func (d Daemon) Begin() string { return d.begin }

// WantNone fails the test if a process of the daemon is alive.
func (d Daemon) WantNone(t *testing.T) {
	t.Helper()
	if alive := d.Alive(); len(alive) > 0 {
		t.Errorf("%s: got %d processes alive (%v), want none", d.name, len(alive), alive[:min(len(alive), 5)])
	}
}

// Alive returns the processes of the daemon that are no zombies.
func (d Daemon) Alive() []int { return Alive(d.mark) }

// Alive returns the processes of this host that have the mark in their arguments and are no
// zombies. Those of containers are among them.
func Alive(mark string) (alive []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		args, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(args, []byte(mark)) {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(filepath.Dir(file), "stat"))
		if err != nil || bytes.Contains(stat[bytes.LastIndexByte(stat, ')'):], []byte(") Z ")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			alive = append(alive, pid)
		}
	}
	return alive
}
