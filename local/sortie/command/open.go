package command

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/cli"
)

// browsers are the programs that open an address in the user's browser, by operating system.
var browsers = map[string]string{"linux": "xdg-open", "darwin": "open"}

func (a *app) open() *cobra.Command {
	var printOnly bool
	c := &cobra.Command{
		Use: "open", Short: "Open the web console in a browser",
		Long: `Open the web console in a browser. The address signs the browser in with the
token of this command, once. It is valid for ten minutes. If no browser can be
started, or with --print, the command prints the address instead.`,
		Example: "  sortie open\n  sortie open --print",
	}
	c.Flags().BoolVar(&printOnly, "print", false, "print the address and start no browser")
	c.RunE = cli.Does(func(ctx context.Context, _ []string) error {
		client, err := a.Client()
		if err != nil {
			return err
		}
		address, ticket, err := client.OpenConsole(ctx)
		if err != nil {
			return err
		}
		if a.JSON {
			ticket.Path = address
			return a.Print(ticket)
		}
		if browser := browsers[runtime.GOOS]; !printOnly && browser != "" {
			if err := exec.CommandContext(ctx, browser, address).Run(); err == nil {
				return nil
			}
		}
		_, err = fmt.Fprintln(a.Stdout, address)
		return err
	})
	return c
}
