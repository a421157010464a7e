//go:build linux

package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// groupsFolder is the mount point of control groups: one tree for version 2, one tree per
// controller for version 1.
const groupsFolder = "/sys/fs/cgroup"

// trees returns the roots of the control group trees.
func trees() ([]string, error) {
	if _, err := os.Stat(filepath.Join(groupsFolder, "cgroup.controllers")); err == nil {
		return []string{groupsFolder}, nil
	}
	all, err := filepath.Glob(filepath.Join(groupsFolder, "*", "cgroup.procs"))
	if err != nil || len(all) == 0 {
		return nil, errors.Join(err, errors.New(groupsFolder+" has no control groups, want version 1 or 2 mounted there"))
	}
	for i := range all {
		all[i] = filepath.Dir(all[i])
	}
	return all, nil
}

// createGroup creates a control group in each tree.
func createGroup(name string) error {
	all, err := trees()
	if err != nil {
		return err
	}
	for _, tree := range all {
		if err := os.Mkdir(filepath.Join(tree, name), 0o755); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // G301: as the kernel's
			return fmt.Errorf("cannot create a control group: %w; nodes with a kubelet need to write %s", err, groupsFolder)
		}
	}
	return nil
}

// groupTime limits the wait until the kernel permits the removal of a control group whose
// processes have ended.
const groupTime = time.Minute

// removeGroup removes a control group and its children. Their processes must have ended.
func removeGroup(name string) error {
	all, err := trees()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), groupTime)
	defer cancel()
	var failed []error
	for _, tree := range all {
		if err := removeSoon(ctx, filepath.Join(tree, name)); err != nil {
			failed = append(failed, fmt.Errorf("cannot remove a control group: %w", err))
		}
	}
	return errors.Join(failed...)
}

// removeSoon retries removeTree until the kernel permits it or ctx ends.
func removeSoon(ctx context.Context, path string) error {
	often := time.NewTicker(20 * time.Millisecond)
	defer often.Stop()
	for {
		err := removeTree(path)
		if err == nil {
			return nil
		}
		select {
		case <-often.C:
		case <-ctx.Done():
			return err
		}
	}
}

// removeTree removes a control group and its children. The kernel removes their files.
func removeTree(path string) error {
	var folders []string
	err := filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			folders = append(folders, path)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, folder := range slices.Backward(folders) {
		if err := os.Remove(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
