//go:build unix

package operate

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/argument"
	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/adapter/keyfile"
	"github.com/sortie-dev/sortie/shared/base/limit"
)

func (a *Operator) keys() *cobra.Command {
	return cli.Group("keys", "Manage the keys that sign the tokens of workers, and events", a.rotate())
}

func (a *Operator) rotate() *cobra.Command {
	var data string
	var ofEvents, atOnce bool
	c := &cobra.Command{
		Use:   "rotate",
		Short: "Sign tokens, or events, with a new key",
		Long: `Add a new key to a data folder. It signs all further tokens, also those of a
running "sortie dev". Tokens signed before stay valid until they expire. A key is
removed once every token that it signed has expired (after 45 days at most). With --now
all older keys are removed at once, because one of them is known to others: each token
that they signed is refused, and the attempts that are under way fail.

With --events the key signs events and checkpoints. Older keys stay published at
/.well-known/jwks.json, because exported events are verified at any time. The key of
a stage is replaced by "sortie secrets put events --stage STAGE".`,
		Example: "  sortie keys rotate\n  sortie keys rotate --now\n  sortie keys rotate --events\n  sortie keys rotate --data /var/lib/sortie --json",
	}
	c.Flags().StringVar(&data, "data", cli.DefaultData, "data folder")
	c.Flags().BoolVar(&ofEvents, "events", false, "rotate the key that signs events")
	c.Flags().BoolVar(&atOnce, "now", false, "remove the older keys at once, with the tokens that they signed")
	c.MarkFlagsMutuallyExclusive("events", "now")
	argument.Must(c.MarkFlagDirname("data"))
	c.RunE = cli.Does(func(context.Context, []string) error {
		path, now := filepath.Join(data, stack.KeysFile), a.Clock.Now()
		keep := limit.TokenLife
		if atOnce {
			keep = -1
		}
		rotate := func() (keyfile.Rotation, error) { return keyfile.Rotate(path, now, keep) }
		if ofEvents {
			path = filepath.Join(data, stack.EventKeysFile)
			rotate = func() (keyfile.Rotation, error) { return keyfile.RotateEvents(path, now) }
		}
		done, err := rotate()
		if errors.Is(err, fs.ErrNotExist) {
			return cli.Missing(path, err)
		}
		if err != nil {
			return err
		}
		a.Note("%d older keys are still valid; removed: %s.", len(done.Kept), list(done.Dropped))
		return a.Result(done, "%s\n", done.Made)
	})
	return c
}

func list(ids []string) string {
	if len(ids) == 0 {
		return "none"
	}
	return strings.Join(ids, ", ")
}
