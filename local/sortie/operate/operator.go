// Package operate has the commands that need no server: they run one on this machine, keep its data
// folder, and set up a stage on AWS.
package operate

import (
	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/cli"
)

// Operator has the commands of the package.
type Operator struct{ *cli.App }

// Stage returns the commands for a stage on AWS.
func Stage(a *cli.App) []*cobra.Command {
	o := &Operator{a}
	return []*cobra.Command{o.stage(), o.redrive()}
}
