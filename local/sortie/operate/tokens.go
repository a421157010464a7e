//go:build unix

package operate

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/argument"
	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/local/sortie/stage"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/adapter/secrets"
	"github.com/sortie-dev/sortie/shared/adapter/tokenfile"
	"github.com/sortie-dev/sortie/shared/base/private"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

func (a *Operator) tokens() *cobra.Command {
	return cli.Group("tokens", "Manage the tokens of clients", a.tokensAdd(), a.tokensList(), a.tokensRevoke())
}

// place selects a data folder or a stage. settings is the file with the region of the stage.
type place struct{ Data, stage, settings string }

func (p *place) define(c *cobra.Command) {
	c.Flags().StringVar(&p.Data, "data", cli.DefaultData, "data folder")
	c.Flags().StringVar(&p.stage, "stage", "", "name of a deployed stage, instead of a data folder")
	defineSettings(c, &p.settings)
	argument.Must(c.MarkFlagDirname("data"))
}

// tenant returns the tenant of AUTH_TOKEN.
func (p place) tenant() string {
	if p.stage == "" {
		return stack.Tenant(p.Data)
	}
	return access.Default
}

// tokenList is the list of token records that a command reads or changes.
type tokenList struct{ place }

func (l tokenList) file() string { return filepath.Join(l.Data, stack.TokensFile) }

// cacheTime is the time for which a running server may still accept a revoked token.
func (l tokenList) cacheTime() time.Duration {
	if l.stage != "" {
		return secrets.DefaultTTL
	}
	return tokenfile.CacheTime
}

// aws returns the AWS configuration for a stage, in the region of its settings or else of the
// credentials.
func (a *Operator) aws(ctx context.Context, at place) (aws.Config, error) {
	if err := checkStage(at.stage); err != nil {
		return aws.Config{}, err
	}
	settings, err := stage.ReadSettings(at.settings)
	if err != nil {
		return aws.Config{}, err
	}
	cfg, err := a.AWS(ctx)
	if err != nil {
		return cfg, fmt.Errorf("cannot load the AWS configuration: %w", err)
	}
	cfg.Region = cmp.Or(settings.Region(at.stage), cfg.Region)
	return cfg, nil
}

func (a *Operator) readTokens(ctx context.Context, l tokenList) ([]access.Token, error) {
	if l.stage == "" {
		tokens, _, err := tokenfile.Read(l.file())
		return tokens, err
	}
	cfg, err := a.aws(ctx, l.place)
	if err != nil {
		return nil, err
	}
	clients, err := secrets.ReadClients(ctx, cfg, l.stage)
	return clients.Records, err
}

func (a *Operator) updateTokens(ctx context.Context, l tokenList, change func([]access.Token) ([]access.Token, error)) error {
	if l.stage == "" {
		if err := private.Folder(l.Data); err != nil {
			return fmt.Errorf("cannot use the data folder: %w", err)
		}
		return tokenfile.Update(l.file(), change)
	}
	cfg, err := a.aws(ctx, l.place)
	if err != nil {
		return err
	}
	return secrets.UpdateClients(ctx, cfg, l.stage, change)
}

// addedToken is a new record with the text of the token, which is not stored.
type addedToken struct {
	Text string `json:"token"`
	access.Token
}

func (a *Operator) tokensAdd() *cobra.Command {
	list, record, grant := tokenList{}, access.Token{}, grantFlags{}
	scopes := []string{string(access.RunsRead), string(access.RunsWrite)}
	c := &cobra.Command{
		Use:   "add NAME",
		Short: "Create a client token",
		Long: fmt.Sprintf(`Create a client token and print it. It cannot be shown again: only its SHA-256 is
stored, in a data folder or in a stage's secret on AWS. Running servers accept it
at once; a stage within %v. From then on a server needs a token for every
request of a client, also on loopback.

The scopes are %s.
No scope implies another one. exec runs programs of the host of a local system, with
all rights of the user who started it; no token has it by default. The tenant separates everything: a token reaches
only the runs of its own.

--models, --budget and --rate limit the inference runs of a person or a program. A budget counts what
their runs reserve and have cost in a UTC day, a week from Monday, a month, or in total. Change the list of a stage from one place at a time.`, secrets.DefaultTTL, scopeNames()),
		Example: "  sortie tokens add ci --scope runs:read --scope runs:write --expires 720h\n" +
			"  sortie tokens add acme --tenant acme --project web --stage prod\n" +
			"  sortie tokens add alice --models llama-3 --budget 20USD/month --rate 60/minute --expires 2026-12-31",
	}
	list.define(c)
	flags := c.Flags()
	flags.StringArrayVar(&scopes, "scope", scopes, "permission of the token (repeatable)")
	flags.StringVar(&record.Tenant, "tenant", "", `tenant of the token; by default that of AUTH_TOKEN, "default"`)
	flags.StringVar(&record.Project, "project", "", "project of the runs that the token creates; by default the tenant's name")
	grant.define(flags)
	argument.Complete(c, "scope", "", strings.Split(scopeNames(), ", "))
	c.RunE = cli.Does(func(ctx context.Context, args []string) error {
		record.Name = args[0]
		if err := grant.apply(&record, a.Clock.Now()); err != nil {
			return err
		}
		for _, s := range scopes {
			record.Scopes = append(record.Scopes, access.Scope(s))
		}
		record.Tenant = cmp.Or(record.Tenant, list.tenant())
		record.Project = cmp.Or(record.Project, record.Tenant)
		return a.addToken(ctx, list, record)
	})
	return c
}

func scopeNames() string {
	var names []string
	for _, s := range access.Scopes() {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}

func (a *Operator) addToken(ctx context.Context, list tokenList, record access.Token) error {
	text, err := access.New(rand.Reader)
	if err != nil {
		return err
	}
	record.SHA256 = access.Digest(text)
	err = a.updateTokens(ctx, list, func(tokens []access.Token) ([]access.Token, error) {
		after, err := access.Add(tokens, record)
		if err != nil {
			return nil, cli.Advised{Err: err, Code: cli.ExitUsage}
		}
		return after, nil
	})
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintLine(addedToken{text, record})
	}
	a.Note("Added %s. The token is shown only here:", record.Name)
	return a.Say("%s\n", text)
}

func (a *Operator) tokensList() *cobra.Command {
	list := tokenList{}
	c := &cobra.Command{
		Use: "list", Short: "List the client tokens",
		Long: `List the records of client tokens. The fingerprint is that of the server's log:
the first six digits of the token's SHA-256. BUDGET is what the inference runs of the
current period have cost, of what they may. The tokens of AUTH_TOKEN and the data
folder's own token have no record.`,
		Example: "  sortie tokens list\n  sortie tokens list --stage prod --json",
	}
	list.define(c)
	c.RunE = cli.Does(func(ctx context.Context, _ []string) error {
		tokens, err := a.readTokens(ctx, list)
		if err != nil {
			return err
		}
		listed, err := a.withSpending(ctx, list, tokens)
		if err != nil {
			return err
		}
		t := display.NewTable("NAME", "TENANT", "PROJECT", "SCOPES", "MODELS", "BUDGET", "RATE", "EXPIRES", "FINGERPRINT")
		for _, record := range listed {
			var scopes []string
			for _, s := range record.Scopes {
				scopes = append(scopes, string(s))
			}
			expires := "never"
			if !record.ExpiresAt.IsZero() {
				expires = record.ExpiresAt.Format(time.DateTime)
			}
			if record.Expired(a.Clock.Now()) {
				expires = "expired"
			}
			models, spent, rate := record.limits()
			t.Row(record.Name, record.Tenant, record.Project, strings.Join(scopes, ","), models, spent, rate, expires, record.Fingerprint())
		}
		return a.Table(map[string]any{"records": listed}, t)
	})
	return c
}

func (a *Operator) tokensRevoke() *cobra.Command {
	list := tokenList{}
	c := &cobra.Command{
		Use:   "revoke NAME",
		Short: "Revoke a client token",
		Long: fmt.Sprintf(`Remove the record of a client token. Running servers refuse the token within %v,
functions of a stage within %v, or later while Secrets Manager fails. Its open
streams end %v later, WebSockets of a stage within another minute.

After the last token was revoked, a server still needs one; to serve programs of
this host without a token, remove the file %s from the data folder.`, tokenfile.CacheTime, secrets.DefaultTTL, httpkit.RecheckInterval, stack.TokensFile),
		Example: "  sortie tokens revoke ci\n  sortie tokens revoke acme --stage prod",
	}
	list.define(c)
	c.RunE = cli.Does(func(ctx context.Context, args []string) error {
		err := a.updateTokens(ctx, list, func(tokens []access.Token) ([]access.Token, error) {
			return access.Revoke(tokens, args[0])
		})
		if errors.Is(err, access.ErrUnknown) {
			return cli.Advised{Err: err, Code: cli.ExitGone, Hint: fmt.Sprintf("%q lists the names", a.Name+" tokens list")}
		}
		if err != nil {
			return err
		}
		if a.JSON {
			return a.Print(map[string]any{"revoked": args[0], "effectiveWithinSeconds": list.cacheTime().Seconds()})
		}
		a.Note("Revoked %s. Running servers refuse it within %v.", args[0], list.cacheTime())
		return nil
	})
	return c
}
