package archtest

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var inACopy = flag.Bool("changes", false, "make the changes of testdata/changes in copies of the tree, which takes minutes")

// change is a file of testdata/changes: an example of a change to the repository.
type change struct {
	name, title string
	// most is the maximum number of files that are edited by hand.
	most int
	// generate writes the generated files. checks fail while a file of the change is missing.
	generate, checks []string
	// generated are the files that generate writes.
	generated []string
	// later are the files that only longer tests miss, such as the suite.
	later []string
	// also is a sentence about files that the example leaves out.
	also  string
	files []changedFile
}

// changedFile is a file that the change edits by hand. A new file has content, others have
// edits: a text that the file has once, and its replacement.
type changedFile struct {
	path, note, content string
	edits               [][2]string
}

// changes reads the files of testdata/changes, in the order of their names.
func changes(t *testing.T) (found []change) {
	t.Helper()
	names, err := filepath.Glob("testdata/changes/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatalf("got %v, %v, want files", names, err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		c, err := parseChange(string(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		c.name = strings.TrimSuffix(filepath.Base(name), ".txt")
		found = append(found, c)
	}
	return found
}

// parseChange reads an example. Its head has lines "key: value". Each "-- path: note" begins a
// file. An edit is a text between <<<< and ====, and its replacement until >>>>.
func parseChange(text string) (c change, err error) {
	head, rest, _ := strings.Cut(text, "\n-- ")
	for line := range strings.Lines(head) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		switch {
		case key == "title":
			c.title = value
		case key == "most":
			c.most, err = strconv.Atoi(value)
		case key == "generate":
			c.generate = append(c.generate, value)
		case key == "check":
			c.checks = append(c.checks, value)
		case key == "generated":
			c.generated = append(c.generated, value)
		case key == "also":
			c.also = value
		case key == "later":
			c.later = append(c.later, value)
		case ok:
			err = fmt.Errorf("unknown key %q", key)
		}
		if err != nil {
			return c, err
		}
	}
	for part := range strings.SplitSeq(rest, "\n-- ") {
		line, body, _ := strings.Cut(part, "\n")
		f := changedFile{content: strings.TrimSuffix(body, "\n") + "\n"}
		f.path, f.note, _ = strings.Cut(line, ": ")
		for _, edit := range strings.Split(body, "<<<<\n")[1:] {
			before, after, ok := strings.Cut(edit, "====\n")
			after, _, ended := strings.Cut(after, ">>>>")
			if !ok || !ended {
				return c, fmt.Errorf("%s: malformed edit, want <<<<, ==== and >>>>", f.path)
			}
			f.edits, f.content = append(f.edits, [2]string{strings.TrimSuffix(before, "\n"), strings.TrimSuffix(after, "\n")}), ""
		}
		c.files = append(c.files, f)
	}
	return c, nil
}

// apply writes the file into the tree at dir.
func (f changedFile) apply(dir string) error {
	path := filepath.Join(dir, filepath.FromSlash(f.path))
	content := f.content
	if len(f.edits) > 0 {
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("cannot edit the file: %w", err)
		}
		if content, err = f.edited(string(text)); err != nil {
			return err
		}
	} else if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // a copy of public files
		return fmt.Errorf("cannot add the file: %w", err)
	}
	return os.WriteFile(path, []byte(content), 0o644) //nolint:gosec // a copy of public files
}

// edited returns the text with the edits.
func (f changedFile) edited(text string) (string, error) {
	for _, edit := range f.edits {
		if n := strings.Count(text, edit[0]); n != 1 {
			return "", fmt.Errorf("%s: got %d times %q, want it once", f.path, n, edit[0])
		}
		text = strings.Replace(text, edit[0], edit[1], 1)
	}
	return text, nil
}

// changePaths returns the change paths of the examples in Markdown.
func changePaths(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	names := strings.NewReplacer("sampled", "NAME", "sample", "NAME")
	for _, c := range changes(t) {
		fmt.Fprintf(&text, "### %s: %d files\n\n", c.title, len(c.files))
		for _, f := range c.files {
			fmt.Fprintf(&text, "- `%s`: %s\n", names.Replace(f.path), f.note)
		}
		fmt.Fprintf(&text, "\nGenerated: `%s`.\n", names.Replace(strings.Join(c.generated, "`, `")))
		if c.also != "" {
			text.WriteString(c.also + "\n")
		}
		text.WriteString("\n")
	}
	return text.String()
}

// TestChangesApply checks that the examples of changes fit the tree and its limits.
func TestChangesApply(t *testing.T) {
	t.Parallel()
	for _, c := range changes(t) {
		if len(c.files) > c.most {
			t.Errorf("%s: got %d files, want at most %d", c.title, len(c.files), c.most)
		}
		for _, f := range c.files {
			text, err := os.ReadFile(filepath.Join(root(t), filepath.FromSlash(f.path)))
			if exists := err == nil; exists != (len(f.edits) > 0) {
				t.Errorf("%s: %s: got a file that exists: %t, want edits of files that exist, and new files", c.title, f.path, exists)
			} else if exists {
				if _, err := f.edited(string(text)); err != nil {
					t.Errorf("%s: %v", c.title, err)
				}
			}
		}
	}
}

// TestChangesInACopy makes each change in a copy of the tree. The checks pass, git reports the
// files of the change and no others, and without any one of them a check fails. It needs the
// flag -changes.
func TestChangesInACopy(t *testing.T) { //nolint:tparallel // each builds a whole tree
	t.Parallel()
	if !*inACopy {
		return // "make nightly" has the flag
	}
	for _, c := range changes(t) { //nolint:paralleltest // one after the other
		t.Run(c.name, func(t *testing.T) {
			dir := copyOfTheTree(t)
			for _, f := range c.files {
				if err := f.apply(dir); err != nil {
					t.Fatal(err)
				}
			}
			if out, err := c.proceed(dir, c.generate, c.checks); err != nil {
				t.Fatalf("got %v, want a change that passes its checks:\n%s", err, out)
			}
			want := slices.Clone(c.generated)
			for _, f := range c.files {
				want = append(want, f.path)
			}
			slices.Sort(want)
			if got := changedIn(t, dir); !slices.Equal(got, want) {
				t.Errorf("got changes of\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			command(t, dir, "git", "add", "-A")
			command(t, dir, "git", "-c", "user.name=test", "-c", "user.email=test@example.org", "commit", "-q", "-m", "change")
			for _, f := range c.files {
				if strings.HasSuffix(f.path, "_test.go") || slices.Contains(c.later, f.path) {
					continue
				}
				if len(f.edits) == 0 {
					command(t, dir, "git", "rm", "-q", f.path)
				} else {
					command(t, dir, "git", "checkout", "-q", "HEAD~1", "--", f.path)
				}
				if _, err := c.proceed(dir, c.generate, c.checks); err == nil {
					t.Errorf("without %s: got checks that pass, want one that fails", f.path)
				}
				command(t, dir, "git", "reset", "-q", "--hard", "HEAD")
				command(t, dir, "git", "clean", "-q", "-f", "-d")
			}
		})
	}
}

// proceed runs commands in dir and returns the output of the first one that fails.
func (c change) proceed(dir string, lists ...[]string) (string, error) {
	for _, line := range slices.Concat(lists...) {
		words := strings.Fields(line)
		run := exec.Command(words[0], words[1:]...) //nolint:gosec // G204: commands of testdata
		run.Dir = dir
		if out, err := run.CombinedOutput(); err != nil {
			return string(out), fmt.Errorf("%s: %w", line, err)
		}
	}
	return "", nil
}

// copyOfTheTree returns a folder with the files of the repository, committed.
func copyOfTheTree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range trackedFiles(t) {
		from := filepath.Join(root(t), filepath.FromSlash(name))
		info, err := os.Lstat(from)
		if err != nil || info.Mode()&fs.ModeSymlink != 0 {
			continue
		}
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil { //nolint:gosec // a copy of public files
			t.Fatal(err)
		}
		if err := os.WriteFile(to, text, info.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
	command(t, dir, "git", "init", "-q")
	command(t, dir, "git", "add", "-A")
	command(t, dir, "git", "-c", "user.name=test", "-c", "user.email=test@example.org", "commit", "-q", "-m", "tree")
	return dir
}

// changedIn returns the files of a working tree that differ from its commit, sorted.
func changedIn(t *testing.T, dir string) []string {
	t.Helper()
	command(t, dir, "git", "add", "-A")
	files := strings.Fields(command(t, dir, "git", "diff", "--cached", "--name-only"))
	slices.Sort(files)
	return files
}

// command runs a command in dir and returns its output.
func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	run := exec.Command(name, args...)
	run.Dir = dir
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}
