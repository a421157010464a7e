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
	return &cobra.Command{
		Args: argument.AtLeastOne("MODEL"),
		Use:  "split MODEL [OTHER=PERCENT]...", Short: "Send shares of the runs for a model to other models",
		Long:    "Send shares of the runs for a model to other models, such as 5 % to a new one. The shares replace those of before; without any, the model serves all of its runs.",
		Example: "  sortie models split chat chat-new=5\n  sortie models split chat",
		RunE:    cli.Printed(a.App, withShares((*client.Client).SplitModel), a.showModel),
	}
}

func (a *app) modelsShadow() *cobra.Command {
	return &cobra.Command{
		Args: argument.AtLeastOne("MODEL"),
		Use:  "shadow MODEL [OTHER=PERCENT]...", Short: "Copy shares of the runs for a model to other models",
		Long: `Copy shares of the runs for a model to other models, such as 10 % to a new one, to compare them.
A copy is sent after the answer, and is dropped if the pool of the other model is busy. No client
gets its answer, and no budget pays it: "sortie explain" compares both. The shares replace those of
before; without any, nothing is copied.`,
		Example: "  sortie models shadow chat chat-new=10\n  sortie models shadow chat",
		RunE:    cli.Printed(a.App, withShares((*client.Client).ShadowModel), a.showModel),
	}
}

// withShares returns a call for the model and the shares of arguments.
func withShares(
	set func(*client.Client, context.Context, string, []contract.ModelShare) (contract.Model, error),
) func(context.Context, *client.Client, []string) (contract.Model, error) {
	return func(ctx context.Context, c *client.Client, args []string) (contract.Model, error) {
		shares, err := sharesOf(args[1:])
		if err != nil {
			return contract.Model{}, err
		}
		return set(c, ctx, args[0], shares)
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
