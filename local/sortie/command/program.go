package command

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/argument"
	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/local/sortie/operate"
)

// app has the commands that the package defines.
type app struct{ *cli.App }

// Main runs the command that the arguments name until it is done or ctx ends. It returns the
// exit code.
func Main(ctx context.Context, p cli.Program) int {
	if p.Name == "" {
		p.Name = "sortie"
	}
	a := &app{cli.New(p)}
	root := a.root()
	root.SetArgs(p.Args)
	root.SetIn(p.Stdin)
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return cli.ExitOK
	}
	r := a.Explain(err)
	plain, _ := a.Env("NO_COLOR")
	r.Write(a.Screen, a.JSON || slices.Contains(p.Args, "--json"), a.Screen.Draws() && plain == "")
	return r.Code
}

// forReader chooses the form of texts. On a terminal, times are local and states have colours,
// unless NO_COLOR is set.
func (a *app) forReader() {
	if a.Size != nil && !a.UTC {
		a.Times.Zone = a.Program.Zone
	}
	if plain, _ := a.Env("NO_COLOR"); a.Size != nil && plain == "" {
		a.Stdout = display.Colored{Writer: a.Stdout}
	}
}

// Tree returns the command tree without a process, to validate command lines. Its commands
// cannot be executed.
func Tree() *cobra.Command {
	a := &app{&cli.App{Program: cli.Program{Env: func(string) (string, bool) { return "", false }}}}
	return a.root()
}

func (a *app) root() *cobra.Command {
	var version bool
	root := &cobra.Command{
		Use:   "sortie",
		Short: "Run ephemeral workers and fetch their results",
		Long: `Sortie runs ephemeral workers and fetches their results.

"sortie demo" shows one run in a few seconds. "sortie dev" keeps a server
running on this machine. The client commands find it from every folder, with its
token, which they send once the server has proved that it has the key of its data
folder. --url or SORTIE_URL name another server, --token-file or SORTIE_TOKEN
another token.`,
		Example: `  sortie demo
  sortie dev
  sortie export mods --pi 01K9XVBAQZF9EHDRXGBEADTZYY --recursive`,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if version {
				return a.showVersion()
			}
			return cmd.Help()
		},
	}
	root.AddGroup(
		&cobra.Group{ID: "server", Title: "On this machine:"},
		&cobra.Group{ID: "client", Title: "With a server:"},
		&cobra.Group{ID: "stage", Title: "With a stage on AWS:"},
	)
	// Cobra's version flag would need text/template for a custom text.
	root.Flags().BoolVarP(&version, "version", "v", false, "show the version of this program")
	root.SetFlagErrorFunc(argument.FlagError)
	root.PersistentFlags().BoolVar(&a.JSON, "json", false, "print JSON, errors too")
	root.PersistentFlags().BoolVar(&a.UTC, "utc", false, "print times in UTC, as without a terminal")
	root.PersistentPreRun = func(*cobra.Command, []string) { a.forReader() }
	for id, commands := range map[string][]*cobra.Command{
		"server": slices.Concat(operate.Local(a.App), a.demos(), []*cobra.Command{a.imports()}, a.twins()),
		"client": {a.open(), a.run(), a.export(), a.status(), a.explainRun(), a.download(), a.runs(), a.events(), a.cancel(), a.retry(), a.label(), a.logs(), a.jobs(), a.pools(), a.webhooks(), a.artifacts(), a.models(), a.sessions(), a.budgets(), a.usage(), a.ask()},
		"stage":  operate.Stage(a.App),
	} {
		for _, c := range commands {
			c.GroupID = id
			if id == "client" {
				a.ServerFlags(c)
			}
			root.AddCommand(c)
		}
	}
	root.AddCommand(a.version())
	a.completeNames(root)
	argument.Check(root)
	return root
}
