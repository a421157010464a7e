//go:build unix

package operate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/argument"
	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
)

func (a *Operator) backup() *cobra.Command {
	data := ""
	c := &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the records of a data folder",
		Long: `Write a consistent copy of the records (runs, events, executions) of a data
folder to FILE. "sortie dev" may run meanwhile. FILE must not exist; it appears
complete or not at all. It does not contain the outputs in the object store.

To restore, stop the server and replace ` + stack.RecordsFile + ` in the data folder by the
copy, without the files ` + stack.RecordsFile + `-wal and ` + stack.RecordsFile + `-shm beside it.`,
		Example: "  sortie backup sortie-$(date +%F).db\n  sortie backup copy.db --data /var/lib/sortie",
	}
	c.Flags().StringVar(&data, "data", cli.DefaultData, "data folder")
	argument.Must(c.MarkFlagDirname("data"))
	c.RunE = cli.Does(func(ctx context.Context, args []string) error {
		source := filepath.Join(data, stack.RecordsFile)
		if _, err := os.Stat(source); err != nil {
			return cli.Missing(source, err)
		}
		err := sqlite.BackupFile(ctx, source, args[0])
		if errors.Is(err, fs.ErrExist) {
			return cli.Wrong("%s exists", args[0])
		}
		if err != nil {
			return err
		}
		info, err := os.Stat(args[0])
		if err != nil {
			return fmt.Errorf("cannot read the size of the copy: %w", err)
		}
		a.Note("Copied %s.", display.Bytes(info.Size()))
		return a.Result(map[string]any{"file": args[0], "bytes": info.Size()}, "%s\n", args[0])
	})
	return c
}
