//go:build unix

package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/argument"
	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/adapter/secretfile"
	"github.com/sortie-dev/sortie/shared/adapter/secrets"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/base/private"
	"github.com/sortie-dev/sortie/shared/port"
)

// jobSecrets are the secrets of a tenant's jobs in a data folder or a stage.
type jobSecrets struct {
	place
	owner string
}

func (s *jobSecrets) define(c *cobra.Command) {
	s.place.define(c)
	c.Flags().StringVar(&s.owner, "tenant", "", `tenant of the jobs; by default that of AUTH_TOKEN, "default"`)
}

func (s jobSecrets) folder() secretfile.Folder {
	return secretfile.Folder(filepath.Join(s.Data, stack.SecretsFolder))
}

// tenant returns the tenant of the secrets.
func (s jobSecrets) tenant() string { return cmp.Or(s.owner, s.place.tenant()) }

// checkPlace returns an error for a malformed stage or tenant.
func (s jobSecrets) checkPlace() error {
	if s.stage != "" {
		if err := checkStage(s.stage); err != nil {
			return err
		}
	}
	if !limit.ValidName(s.tenant()) {
		return cli.Wrong("--tenant: malformed name %q, want 1 to 63 lower-case letters, digits and hyphens", s.tenant())
	}
	return nil
}

// check returns an error for a malformed name of a job's secret, and for the name of a stage's
// own secret. A malformed name may be a secret itself, so the error does not contain it.
func (s jobSecrets) check(name string) error {
	switch kinds := secrets.Kinds(); {
	case !limit.ValidName(name):
		return cli.Wrong("malformed name of a secret, want 1 to 63 lower-case letters, digits and hyphens, or with --stage one of %s", strings.Join(kinds, ", "))
	case slices.Contains(kinds, name):
		return cli.Wrong("%s is the name of a stage's own secret, want another name, or --stage to write it", name)
	case s.stage != "" && s.owner == "" && argument.Similar(name, kinds) != "":
		return cli.Wrong("unknown name of a stage's own secret %q%s; for a secret of jobs add --tenant %s", name, argument.Similar(name, kinds), s.tenant())
	}
	return s.checkPlace()
}

func (a *Operator) putJobSecret(ctx context.Context, s jobSecrets, name, value string) error {
	value = strings.TrimSuffix(strings.TrimSuffix(value, "\n"), "\r")
	if !limit.ValidSecret(value) {
		return cli.Wrong("the value has %d bytes, want 1 to %d bytes of UTF-8 without a NUL", len(value), limit.Secret)
	}
	if err := a.storeJobSecret(ctx, s, name, value); err != nil {
		return err
	}
	if a.JSON {
		return a.Print(map[string]any{"secret": name, "tenant": s.tenant()})
	}
	where := "stage " + s.stage
	if s.stage == "" {
		where = "data folder " + s.Data
	}
	a.Note("Wrote the secret %s of the tenant %s, for the %s.", name, s.tenant(), where)
	return nil
}

func (a *Operator) storeJobSecret(ctx context.Context, s jobSecrets, name, value string) error {
	if s.stage == "" {
		if err := private.Folder(s.Data); err != nil {
			return fmt.Errorf("cannot use the data folder: %w", err)
		}
		return s.folder().Put(s.tenant(), name, value)
	}
	cfg, err := a.aws(ctx, s.place)
	if err != nil {
		return err
	}
	return secrets.PutNamed(ctx, cfg, s.stage, s.tenant(), name, value)
}

func (a *Operator) secretsList() *cobra.Command {
	at := jobSecrets{}
	c := &cobra.Command{
		Use: "list", Short: "List the names of the secrets of jobs",
		Long:    "List the names of the secrets that jobs of a tenant can refer to.",
		Example: "  sortie secrets list\n  sortie secrets list --stage prod --tenant acme --json",
	}
	at.define(c)
	c.RunE = cli.Does(func(ctx context.Context, _ []string) error {
		names, err := a.jobSecretNames(ctx, at)
		if err != nil {
			return err
		}
		if a.JSON {
			return a.Print(map[string]any{"tenant": at.tenant(), "secrets": slices.Concat([]string{}, names)})
		}
		for _, name := range names {
			if err := a.Say("%s\n", name); err != nil {
				return err
			}
		}
		return nil
	})
	return c
}

func (a *Operator) jobSecretNames(ctx context.Context, s jobSecrets) ([]string, error) {
	if err := s.checkPlace(); err != nil {
		return nil, err
	}
	if s.stage == "" {
		return s.folder().List(s.tenant())
	}
	cfg, err := a.aws(ctx, s.place)
	if err != nil {
		return nil, err
	}
	return secrets.ListNamed(ctx, cfg, s.stage, s.tenant())
}

func (a *Operator) secretsDelete() *cobra.Command {
	at := jobSecrets{}
	c := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a secret of jobs",
		Long: `Delete a secret of jobs. A run that needs it fails with SECRET_MISSING from then
on; functions of a stage may use the value for a minute more. It cannot be restored.`,
		Example: "  sortie secrets delete report-key\n  sortie secrets delete report-key --stage prod",
		Args:    secretName,
	}
	at.define(c)
	c.RunE = cli.Does(func(ctx context.Context, args []string) error {
		if err := at.check(args[0]); err != nil {
			return err
		}
		err := a.deleteJobSecret(ctx, at, args[0])
		if errors.Is(err, port.ErrNotFound) {
			return cli.Advised{
				Err: fmt.Errorf("unknown secret %q of the tenant %s", args[0], at.tenant()), Code: cli.ExitGone,
				Hint: fmt.Sprintf("%q lists the names", a.Name+" secrets list"),
			}
		}
		if err != nil {
			return err
		}
		if a.JSON {
			return a.Print(map[string]any{"deleted": args[0], "tenant": at.tenant()})
		}
		a.Note("Deleted the secret %s of the tenant %s.", args[0], at.tenant())
		return nil
	})
	return c
}

func (a *Operator) deleteJobSecret(ctx context.Context, s jobSecrets, name string) error {
	if s.stage == "" {
		return s.folder().Delete(s.tenant(), name)
	}
	cfg, err := a.aws(ctx, s.place)
	if err != nil {
		return err
	}
	return secrets.DeleteNamed(ctx, cfg, s.stage, s.tenant(), name)
}
