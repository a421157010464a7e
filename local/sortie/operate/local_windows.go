package operate

import (
	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/cli"
)

// Local returns the commands for this machine. The local system, its data folder and the check
// of workers need processes, signals and file modes of Unix.
func Local(a *cli.App) []*cobra.Command {
	o := &Operator{a}
	return []*cobra.Command{o.collection(), o.asl()}
}
