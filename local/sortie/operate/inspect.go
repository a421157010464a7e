//go:build unix

package operate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/argument"
	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo/format"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/port"
)

func (a *Operator) inspect() *cobra.Command {
	data := ""
	c := &cobra.Command{
		Use:   "inspect RUN|JOB|WEBHOOK|STREAM|EVENT|-",
		Short: "Show stored records as JSON",
		Long: `Show what is stored about a run or a job in a data folder, about a webhook with its
newest deliveries, about a stream of events (STREAM) with its cursors and newest
checkpoints, or about an event by its id. With "-", show the items of the DynamoDB
table that standard input has: the answers of get-item, or the lines of a table
export. Tokens are replaced by "redacted".`,
		Example: `  sortie inspect export_mods_1704857234567_a3f8c2d1 --data .sortie
  aws dynamodb get-item --table-name sortie-dev --key file://key.json | sortie inspect -
  gunzip -c export.json.gz | sortie inspect -`,
	}
	c.Flags().StringVar(&data, "data", cli.DefaultData, "data folder")
	argument.Must(c.MarkFlagDirname("data"))
	c.RunE = cli.Does(func(ctx context.Context, args []string) error {
		if args[0] == "-" {
			return a.inspectItems()
		}
		path := filepath.Join(data, stack.RecordsFile)
		if _, err := os.Stat(path); err != nil {
			return cli.Missing(path, err)
		}
		found, err := sqlite.Inspect(ctx, path, args[0])
		if errors.Is(err, port.ErrNotFound) {
			return cli.Wrong("no run, job, webhook, stream or event %s in %s", args[0], path)
		}
		if err != nil {
			return err
		}
		text, err := json.Marshal(found)
		if err != nil {
			return fmt.Errorf("cannot encode %s: %w", args[0], err)
		}
		var readable map[string]any
		if err := json.Unmarshal(text, &readable); err != nil {
			return fmt.Errorf("cannot decode %s: %w", args[0], err)
		}
		format.Redact(readable)
		return a.Print(readable)
	})
	return c
}

// inspectItems shows each item of standard input.
func (a *Operator) inspectItems() error {
	items := json.NewDecoder(a.Stdin)
	for n := 1; ; n++ {
		var item json.RawMessage
		err := items.Decode(&item)
		if errors.Is(err, io.EOF) && n > 1 {
			return nil
		}
		if err != nil {
			return cli.Wrong("item %d: malformed JSON: %v", n, err)
		}
		readable, err := format.Inspect(item)
		if err != nil {
			return cli.Wrong("item %d: %v", n, err)
		}
		if err := a.Print(readable); err != nil {
			return err
		}
	}
}
