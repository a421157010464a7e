package command

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func (a *app) models() *cobra.Command {
	return a.Resources("models", "Look at the catalog of models, and change it",
		a.modelsList(), a.modelsAdd(),
		&cobra.Command{
			Use: "show MODEL", Short: "Show a model", Example: "  sortie models show llama-3.1-8b",
			RunE: cli.Printed(a.App, cli.ByID((*client.Client).Model), a.showModel),
		},
		a.modelsSplit(), a.modelsShadow(), a.modelsVerify(), a.modelsState("retire", catalog.Retired, "Refuse new runs of a model"), a.modelsState("activate", catalog.Active, "Permit runs of a retired model"),
		a.Removal(&cobra.Command{
			Use: "remove MODEL", Short: "Remove a model from the catalog", Example: "  sortie models remove llama-3.1-8b",
		}, "removed", (*client.Client).DeleteModel))
}

func (a *app) modelsList() *cobra.Command {
	var engine, tag, state string
	most := 50
	c := &cobra.Command{
		Use: "list", Short: "List models, the newest first", Example: "  sortie models list --engine vllm --state Active",
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error {
			all := contract.ModelList{Models: []contract.Model{}}
			err := cli.Pages(most, func(cursor string) (int, string, error) {
				list, err := c.Models(ctx, cli.Given(url.Values{"limit": {strconv.Itoa(most - len(all.Models))}}, map[string]string{"engine": engine, "tag": tag, "state": state, "cursor": cursor}))
				all.Models, all.NextCursor = append(all.Models, list.Models...), list.NextCursor
				return len(all.Models), list.NextCursor, err
			})
			if err != nil {
				return err
			}
			t := display.NewTable("MODEL", "STATE", "TRUST", "ENGINES", "CONTEXT", "TAGS")
			for _, m := range all.Models {
				t.Row(m.ID, m.State, display.Trust(m), strings.Join(m.Engines, ","), display.Context(m), display.Clean(strings.Join(m.Tags, ",")))
			}
			return a.Table(all, t)
		}),
	}
	flags := c.Flags()
	flags.StringVar(&engine, "engine", "", "only models that this engine serves")
	flags.StringVar(&tag, "tag", "", "only models with this tag")
	flags.StringVar(&state, "state", "", "only models in this state: Active or Retired")
	flags.IntVar(&most, "limit", most, "at most this many models, up to 1000")
	return c
}

func (a *app) modelsAdd() *cobra.Command {
	var in contract.ModelRequest
	var signature string
	var shares []string
	var strict bool
	var input, cached, output int64
	c := &cobra.Command{
		Use: "add MODEL", Short: "Add a model to the catalog",
		Long: `Add a model to the catalog. A signature is a DSSE envelope with a statement of in-toto
about the digest of the model; the server verifies it with the keys that it trusts.`,
		Example: "  sortie models add llama-3.1-8b --engine llamacpp --context 8192 --source hf:meta-llama/Llama-3.1-8B-Instruct",
	}
	flags := c.Flags()
	flags.StringSliceVar(&in.Engines, "engine", nil, "engines that serve the model, separated by commas: "+platform.EngineNames(platform.EngineKinds()))
	flags.StringVar(&in.EngineModel, "engine-model", "", "the engine's name of the model, for an engine that serves several")
	flags.IntVar(&in.ContextTokens, "context", 0, "longest prompt with its answer in tokens; 0 is that of the engine")
	flags.StringSliceVar(&in.Workloads, "workload", nil, "what the model does, separated by commas: completion, embedding or rerank; completion by default")
	flags.StringVar(&in.Source, "source", "", "URI of the model, for people")
	flags.StringVar(&in.Digest, "digest", "", "sha256: and the hexadecimal SHA-256 of the model")
	flags.StringVar(&signature, "signature", "", "file with the signature")
	flags.StringVar(&in.Tokenizer, "tokenizer", "", "name of the tokenizer, for people")
	flags.Int64Var(&input, "input-price", 0, "nano-dollars for a token of the prompt")
	flags.Int64Var(&cached, "cached-price", 0, "nano-dollars for a token of the prompt that the engine has read from its cache; by default those of --input-price")
	flags.Int64Var(&output, "output-price", catalog.DefaultOutputPrice, "nano-dollars for a generated token")
	flags.StringSliceVar(&shares, "split", nil, "shares of the runs that other models serve, as MODEL=PERCENT, separated by commas")
	flags.StringSliceVar(&in.Tags, "tag", nil, "tags, separated by commas")
	flags.BoolVar(&strict, "strict", false, "refuse a model that no trusted key has signed")
	c.RunE = a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
		in.ID, in.Price = args[0], &contract.ModelPrice{Input: input, Output: &output}
		var err error
		if in.Split, err = sharesOf(shares); err != nil {
			return err
		}
		if flags.Changed("cached-price") {
			in.Price.Cached = &cached
		}
		if signature != "" {
			document, err := a.ReadFile(signature)
			if err != nil {
				return fmt.Errorf("cannot read the signature: %w", err)
			}
			if !json.Valid(document) {
				return fmt.Errorf("%s is not JSON, want a DSSE envelope", signature)
			}
			in.Signature = document
		}
		m, err := c.CreateModel(ctx, in, strict)
		if err != nil {
			return err
		}
		return a.sayModel(m)
	})
	return c
}

func (a *app) sayModel(m contract.Model) error {
	return a.Result(m, "%s: %s, %s, for %s\n", m.ID, m.State, display.Trust(m), strings.Join(m.Engines, ", "))
}

func (a *app) showModel(m contract.Model) error {
	if err := a.sayModel(m); err != nil || a.JSON {
		return err
	}
	return a.Say("%s\n", a.Model(m))
}

func (a *app) modelsVerify() *cobra.Command {
	return &cobra.Command{
		Use: "verify MODEL", Short: "Verify the signature of a model with the keys that the server trusts",
		Long:    "Verify the signature of a model with the keys that the server trusts. The exit code is 1 if none of them has signed it.",
		Example: "  sortie models verify llama-3.1-8b",
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			v, err := c.VerifyModel(ctx, args[0])
			if err != nil {
				return err
			}
			if v.Trusted {
				return a.Result(v, "%s: signed by the key %s\n", args[0], v.Model.Verified.Key)
			}
			if a.JSON {
				err = a.Print(v)
			}
			return cmp.Or(err, fmt.Errorf("%s is not trusted: %s", args[0], display.Clean(v.Reason)))
		}),
	}
}

func (a *app) modelsState(use string, state catalog.State, short string) *cobra.Command {
	set := func(ctx context.Context, c *client.Client, args []string) (contract.Model, error) {
		return c.SetModelState(ctx, args[0], string(state))
	}
	return &cobra.Command{
		Use: use + " MODEL", Short: short, Example: "  sortie models " + use + " llama-3.1-8b",
		RunE: cli.Printed(a.App, set, a.sayModel),
	}
}
