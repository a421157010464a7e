package main

import (
	"os"
	"path/filepath"
	"strings"
)

// work is what all schedulers run: a program of the shell that notes its id when it begins and
// when it ends, each with one write to a file.
type work struct {
	folder string
	// seconds is how long each program sleeps, "0" for not at all.
	seconds string
}

// command returns the program and its arguments for an id.
func (w work) command(id string) (string, []string) {
	return "/bin/sh", []string{"-c", w.script(), "work", id}
}

func (w work) script() string {
	begin, end := filepath.Join(w.folder, "begun"), filepath.Join(w.folder, "ended")
	text := `export PEERS_WORK="` + w.folder + `"; echo "$1" >>"` + begin + `"; `
	if w.seconds != "0" {
		text += "sleep " + w.seconds + "; "
	}
	return text + `echo "$1" >>"` + end + `"`
}

// noted returns how often each id is in the file.
func (w work) noted(file string) map[string]int {
	text, _ := os.ReadFile(filepath.Join(w.folder, file))
	counts := map[string]int{}
	for _, id := range strings.Fields(string(text)) {
		counts[id]++
	}
	return counts
}

// left returns how many of its programs are still running.
func (w work) left() int { return len(running("PEERS_WORK=" + w.folder)) }
