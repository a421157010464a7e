// Package environment builds the environment of a machine's program: its command line,
// variables and PATH.
package environment

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// DefaultPath is the PATH of programs if none is configured.
const DefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// MachineVariable is the variable with the machine's id. It also identifies the
// machine's processes after a kill of their supervisor.
const MachineVariable = "FLY_MACHINE_ID"

// Placement describes the machine that a program runs in.
type Placement struct {
	App, MachineID, Region, Image, Version, ProcessGroup string
	// PrivateIP is the address of the machine.
	PrivateIP string
	MemoryMB  int
	// Path is the program's PATH. Root is its home and current folder, and Tmp its
	// folder for temporary files.
	Path, Root, Tmp string
}

// Environment returns the whole environment of the program: PATH, HOME and TMPDIR,
// the variables of the machine's configuration, and those that Fly sets. Later ones
// replace earlier ones. A program of this host, exec:PROGRAM, is part of no Fly app.
func (p Placement) Environment(configured map[string]string) map[string]string {
	env := p.Own()
	maps.Copy(env, configured)
	maps.Copy(env, map[string]string{
		"FLY_APP_NAME": p.App, MachineVariable: p.MachineID, "FLY_ALLOC_ID": p.MachineID, "FLY_REGION": p.Region,
		"FLY_IMAGE_REF": p.Image, "FLY_MACHINE_VERSION": p.Version, "FLY_PRIVATE_IP": p.PrivateIP,
		"FLY_PROCESS_GROUP": p.ProcessGroup, "FLY_VM_MEMORY_MB": fmt.Sprint(p.MemoryMB), "PRIMARY_REGION": p.Region,
	})
	if strings.HasPrefix(p.Image, "exec:") {
		delete(env, "FLY_APP_NAME")
	}
	return env
}

// Own returns the variables of every program of the machine.
func (p Placement) Own() map[string]string {
	return map[string]string{"PATH": p.Path, "HOME": p.Root, "TMPDIR": p.Tmp, MachineVariable: p.MachineID}
}

// ResolveCommand returns a command that works in a machine, whose current folder and PATH
// differ from the caller's. It looks the program up in the caller's PATH. Arguments that name a
// regular file relative to the current folder become absolute.
func ResolveCommand(argv []string) ([]string, error) {
	program, err := exec.LookPath(argv[0])
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return nil, fmt.Errorf("cannot find the program: %w", err)
	}
	resolved := append([]string{program}, argv[1:]...)
	for i, word := range resolved {
		if i > 0 && (filepath.IsAbs(word) || !isRegular(word)) {
			continue
		}
		if resolved[i], err = filepath.Abs(word); err != nil {
			return nil, fmt.Errorf("cannot resolve %s: %w", word, err)
		}
	}
	return resolved, nil
}

func isRegular(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}
