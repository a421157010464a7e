package command

import (
	"net/http"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/client"
)

// serverCommands returns the commands that need no server. The local system, its data folder
// and the check of workers need processes, signals and file modes of Unix.
func (a *app) serverCommands() []*cobra.Command {
	return []*cobra.Command{a.collection(), a.asl()}
}

func (a *app) servers() []client.Server { return nil }

func foundToken(_, _ string) (string, http.RoundTripper) { return "", nil }

func (a *app) serverHint(error) string { return "" }
