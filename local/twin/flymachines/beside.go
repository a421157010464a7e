package flymachines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/sortie-dev/sortie/shared/sdk/go/worker/supervisor"
)

// smallProgram is the file that supervises machines if it is in the folder of this program. It
// starts in a tenth of the time and needs a tenth of the memory.
const smallProgram = "sortie-exec"

// versionLimit is how long a program may take to print its version.
const versionLimit = 5 * time.Second

// Beside returns the path of sortie-exec in the folder of the program executable. It returns
// fs.ErrNotExist if there is no such file. It refuses a program of another version, and one
// that another user could have placed there.
func Beside(ctx context.Context, executable string) (string, error) {
	own, err := filepath.EvalSymlinks(executable)
	if err != nil {
		return "", fmt.Errorf("cannot find this program: %w", err)
	}
	path := filepath.Join(filepath.Dir(own), smallProgram)
	if err := trusted(path, own); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, versionLimit)
	defer cancel()
	version, err := exec.CommandContext(ctx, path, supervisor.Command, supervisor.VersionFlag).Output()
	if err != nil {
		return "", fmt.Errorf("cannot run %s: %w", path, err)
	}
	if got := string(bytes.TrimSpace(version)); got != supervisor.Version() {
		return "", fmt.Errorf("%s is of another version: got %s, want %s", path, got, supervisor.Version())
	}
	return path, nil
}

// trusted returns an error if another user can change the file path, or could have placed it in
// a folder that all can write to. Other users are all but the owner of this process, of the
// file own and of the host.
func trusted(path, own string) error {
	file, err := os.Lstat(path)
	if err != nil {
		return err
	}
	program, err := os.Stat(own)
	if err != nil {
		return err
	}
	if !file.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", path)
	}
	if file.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s can be changed by other users: want mode 0755", path)
	}
	of, ok := file.Sys().(*syscall.Stat_t)
	by, known := program.Sys().(*syscall.Stat_t)
	if !ok || !known {
		return errors.New("this system has no owners of files")
	}
	if uid := int(of.Uid); uid != 0 && uid != os.Geteuid() && of.Uid != by.Uid {
		return fmt.Errorf("%s belongs to user %d, want that of this program", path, uid)
	}
	return nil
}
