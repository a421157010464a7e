package command

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/argument"
	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func (a *app) modelsSplit() *cobra.Command {
	set := func(ctx context.Context, c *client.Client, args []string) (contract.Model, error) {
		shares, err := sharesOf(args[1:])
		if err != nil {
			return contract.Model{}, err
		}
		return c.SplitModel(ctx, args[0], shares)
	}
	return &cobra.Command{
		Args: argument.AtLeastOne("MODEL"),
		Use:  "split MODEL [OTHER=PERCENT]...", Short: "Send shares of the runs for a model to other models",
		Long:    "Send shares of the runs for a model to other models, such as 5 % to a new one. The shares replace those of before; without any, the model serves all of its runs.",
		Example: "  sortie models split chat chat-new=5\n  sortie models split chat",
		RunE:    cli.Printed(a.App, set, a.showModel),
	}
}

// sharesOf parses shares of models: MODEL=PERCENT.
func sharesOf(texts []string) (shares []contract.ModelShare, err error) {
	for _, text := range texts {
		model, percent, _ := strings.Cut(text, "=")
		n, err := strconv.Atoi(strings.TrimSuffix(percent, "%"))
		if err != nil || model == "" {
			return nil, cli.Wrong("malformed share %q, want a model and a percentage, such as chat-new=5", text)
		}
		shares = append(shares, contract.ModelShare{Model: model, Percent: n})
	}
	return shares, nil
}
