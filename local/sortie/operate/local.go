//go:build unix

package operate

import (
	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/cli"
)

// Local returns the commands for this machine. Files with the build constraint "unix" have
// those that a Windows program does not have.
func Local(a *cli.App) []*cobra.Command {
	o := &Operator{a}
	return []*cobra.Command{o.dev(), o.backup(), o.inspect(), o.keys(), o.tokens(), o.secrets(), o.collection(), o.asl(), o.worker()}
}
