package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// presses has for each shell a script that prints what the key Tab offers after $LINE.
var presses = map[string]string{
	// The first function is that of the package bash-completion.
	"bash": `_get_comp_words_by_ref() { words=("${COMP_WORDS[@]}") cword=$COMP_CWORD cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}; }
source <(sortie completion bash)
COMP_LINE=$LINE COMP_POINT=${#LINE} COMP_TYPE=63
read -ra COMP_WORDS <<<"$LINE"
[[ $LINE != *' ' ]] || COMP_WORDS+=('')
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
__start_sortie
printf '%s\n' "${COMPREPLY[@]}"`,
	// The terminal of the inner shell is 100 columns wide.
	"zsh": `zmodload zsh/zpty
zpty inner zsh -f -i
zpty -w inner 'PS1=; stty cols 100; autoload -U compinit; compinit -u -D; source <(sortie completion zsh); compdef _sortie sortie; zstyle ":completion:*" list-prompt ""; echo rea""dy'
zpty -r inner out '*ready*'
zpty -w -n inner "$LINE"$'\t\t'
zpty -r -m inner out "*$WANT*" && print -r -- "$out"
zpty -d inner`,
	"fish": `sortie completion fish | source; complete -C "$LINE"`,
}

// TestShellsComplete presses Tab in each shell that is installed, with a server.
func TestShellsComplete(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, url := dev(t, dir, "--addr", "127.0.0.1:0")
	write(t, dir, "job.yaml", "id: nightly-report\nimage: exec:/bin/true\n")
	if applied := start(t, dir, "jobs", "apply", "job.yaml", "--url", url); applied.exit(t) != 0 {
		t.Fatal(applied.stderr)
	}
	ran := start(t, dir, "jobs", "run", "nightly-report", "--wait", "--url", url)
	if ran.exit(t) != 0 {
		t.Fatal(ran.stderr)
	}
	executable, err := os.Executable()
	if err == nil {
		err = os.Mkdir(filepath.Join(dir, "bin"), 0o700)
	}
	if err == nil {
		err = os.Symlink(executable, filepath.Join(dir, "bin", "sortie"))
	}
	if err != nil {
		t.Fatal(err)
	}
	for shell, script := range presses {
		for line, want := range map[string]string{
			"sortie jobs run ":             "nightly-report",
			"sortie logs ":                 strings.TrimSpace(ran.stdout.String()),
			"sortie events tail --type jo": "job.failed",
			"sortie jo":                    "jobs",
		} {
			t.Run(shell+"/"+line, func(t *testing.T) {
				t.Parallel()
				if _, err := exec.LookPath(shell); err != nil {
					t.Skipf("%s is not installed; its package has that name", shell)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // zsh waits for what is wanted
				defer cancel()
				c := exec.CommandContext(ctx, shell, "-c", script)
				c.Dir = dir
				c.Env = []string{
					"PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH"), "HOME=" + dir, "TERM=xterm",
					"SORTIE_URL=" + url, "LINE=" + line, "WANT=" + want,
				}
				if text, err := c.CombinedOutput(); err != nil || !strings.Contains(string(text), want) {
					t.Errorf("got %v, %q, want %q", err, text, want)
				}
			})
		}
	}
}
