package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
)

func (a *app) backup() *cobra.Command {
	data := ""
	c := &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the records of a data folder, while it is in use",
		Long: `Write a consistent copy of the records (runs, events, executions) of a data
folder to FILE, while "sortie dev" runs on it or not. FILE must not exist; it
appears whole or not at all. The outputs in the object store are not part of it.

To go back, stop the server and put the copy in the place of ` + stack.RecordsFile + ` in the data
folder, without the files ` + stack.RecordsFile + `-wal and ` + stack.RecordsFile + `-shm beside it.`,
		Example: "  sortie backup sortie-$(date +%F).db\n  sortie backup copy.db --data /var/lib/sortie",
		Args:    cobra.ExactArgs(1),
	}
	c.Flags().StringVar(&data, "data", ".sortie", "the data folder")
	if err := c.MarkFlagDirname("data"); err != nil {
		panic(err) // the flag was defined above
	}
	c.RunE = does(func(ctx context.Context, args []string) error {
		source := filepath.Join(data, stack.RecordsFile)
		if _, err := os.Stat(source); err != nil {
			return missing(source, err)
		}
		err := sqlite.BackupFile(ctx, source, args[0])
		if errors.Is(err, fs.ErrExist) {
			return wrong("there is a %s already", args[0])
		}
		if err != nil {
			return err
		}
		info, err := os.Stat(args[0])
		if err != nil {
			return fmt.Errorf("cannot see the copy: %w", err)
		}
		if a.json {
			return a.print(map[string]any{"file": args[0], "bytes": info.Size()})
		}
		a.note("Copied %s.", display.Bytes(info.Size()))
		return a.say("%s\n", args[0])
	})
	return c
}
