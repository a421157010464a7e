package proctree

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Group is a cgroup v2 of one tree.
type Group struct{ dir *os.File }

// NewGroup creates the cgroup of a mark below that of this process. It returns an error if that
// is not permitted or not possible: no cgroup v2, a read-only file system, a kernel before
// 5.14.
func NewGroup(mark Mark) (*Group, error) {
	if mark == "" {
		return nil, errNoGroup
	}
	own, err := ownCgroup()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(own, mark.group())
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot create a cgroup: %w", err)
	}
	g, err := openGroup(dir)
	if err != nil {
		return nil, errors.Join(err, os.Remove(dir))
	}
	return g, nil
}

// openGroup opens a cgroup that can be killed.
func openGroup(dir string) (*Group, error) {
	if _, err := os.Stat(filepath.Join(dir, "cgroup.kill")); err != nil {
		return nil, fmt.Errorf("cannot kill a cgroup: %w", err)
	}
	open, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot open a cgroup: %w", err)
	}
	return &Group{open}, nil
}

// ownCgroup returns the folder of this process's cgroup v2.
func ownCgroup() (string, error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		own, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !ok || strings.HasPrefix(own, "/..") {
			continue
		}
		if at := mountOf(mounts); at != "" {
			return path.Join(at, own), nil
		}
	}
	return "", errNoGroup
}

// mountOf returns where the file system of cgroup v2 is mounted: the fifth field of its
// line in mountinfo (proc(5)).
func mountOf(mounts []byte) string {
	for lines := bufio.NewScanner(bytes.NewReader(mounts)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		_, kind, _ := strings.Cut(lines.Text(), " - ")
		if len(fields) > 4 && strings.HasPrefix(kind, "cgroup2 ") {
			return fields[4]
		}
	}
	return ""
}

// Path returns the folder of the cgroup, or "" for nil.
func (g *Group) Path() string {
	if g == nil {
		return ""
	}
	return g.dir.Name()
}

// Remove removes the cgroup of a program that was not started. It is idempotent.
func (g *Group) Remove() error { return g.remove() }

// kill kills every process of the cgroup, including those that are being forked.
func (g *Group) kill() error {
	if g == nil {
		return nil
	}
	err := os.WriteFile(filepath.Join(g.Path(), "cgroup.kill"), []byte("1"), 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// remove removes the cgroup after its last process has ended. It waits, because the kernel
// needs a moment after that.
func (g *Group) remove() error {
	if g == nil {
		return nil
	}
	defer func() { _ = g.dir.Close() }()
	over := time.NewTimer(patience)
	defer over.Stop()
	for {
		err := removeFolders(g.Path())
		if err == nil {
			return nil
		}
		select {
		case <-over.C:
			return fmt.Errorf("cannot remove a cgroup: %w", err)
		case <-time.After(pause):
		}
	}
}

// removeFolders removes a cgroup and those that its processes created in it. The files of a
// cgroup cannot be removed. They disappear with their folder.
func removeFolders(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		if entry.IsDir() {
			err = errors.Join(err, removeFolders(filepath.Join(dir, entry.Name())))
		}
	}
	return errors.Join(err, os.Remove(dir))
}

// KillMarked kills the remaining processes of a tree whose subreaper was killed. These are the
// processes in the cgroup of the mark in the folder path, unless path is empty, and the
// processes that started with the mark, with their descendants. It returns 0 if none was alive.
// The caller repeats it until then.
func KillMarked(mark Mark, path string) (int, error) {
	if mark == "" {
		return 0, nil
	}
	left := 0
	if filepath.Base(path) == mark.group() {
		alive, err := killGroup(path)
		if err != nil {
			return 0, err
		}
		left += alive
	}
	self := os.Getpid()
	for sure, all := 0, 0; sure < looks; all++ {
		unread := false
		found, err := killAll(func(p process, in map[int]bool) bool {
			if p.pid == self || in[p.parent] {
				return p.pid != self
			}
			marked, executing := p.marked(string(mark))
			unread = unread || executing
			return marked
		})
		if left += found; found > 0 || err != nil {
			return left, err
		}
		if all == mostLooks {
			return left + 1, nil
		}
		if !unread {
			sure++
		}
	}
	return left, nil
}

// looks is how often KillMarked searches in vain before it reports that no process is alive. One
// search may miss a process: a chain of forks whose numbers wrap around meanwhile continues below
// the part that was read. A search that meets a process which is executing a program does not
// count, since the mark of that process cannot be read. mostLooks limits all searches.
const looks, mostLooks = 4, 40

// killGroup kills the processes of a cgroup and removes it when it is empty. It returns 1 if
// there were any, and 0 otherwise.
func killGroup(path string) (int, error) {
	g, err := openGroup(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	events, err := os.ReadFile(filepath.Join(path, "cgroup.events"))
	if err != nil || !bytes.Contains(events, []byte("populated 1")) {
		return 0, errors.Join(err, g.remove())
	}
	defer func() { _ = g.dir.Close() }()
	return 1, g.kill()
}
