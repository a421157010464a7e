//go:build unix

package operate

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/argument"
	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/shared/adapter/secrets"
	"github.com/sortie-dev/sortie/shared/base/limit"
)

// secretLimit limits a secret, in bytes (AWS: 65,536).
const secretLimit = 64 << 10

func checkStage(stage string) error {
	if !stageName.MatchString(stage) {
		return cli.Wrong("--stage: malformed name %q, want 1 to 20 lower-case letters, digits and hyphens", stage)
	}
	return nil
}

func (a *Operator) secrets() *cobra.Command {
	return cli.Group("secrets", "Manage the secrets of jobs, and those of a stage", a.secretsPut(), a.secretsList(), a.secretsDelete())
}

func (a *Operator) secretsPut() *cobra.Command {
	at, file := jobSecrets{}, ""
	c := &cobra.Command{
		Use:   "put NAME",
		Short: "Write a secret of jobs, or one of a stage's secrets",
		Long: fmt.Sprintf(`Write a secret that jobs refer to by its name (secretRef), from standard input or
from --file. The name has 1 to 63 lower-case letters, digits and hyphens, the
value 1 to %d bytes of UTF-8; a line end at its end is removed. The value is never
printed. Running servers of a data folder read the new value at once, functions of
a stage within a minute.

The secret that signs the requests of a hook is whsec_ and the base64 of 32 bytes.

With --stage these names are the stage's own secrets, sortie/STAGE/NAME in AWS
Secrets Manager. Running functions read the new value within five minutes, or within
ten seconds once the other side refuses the old one. The document is JSON and
checked before it is written:

  clients  {"tokens": ["...", ...]}    bearer tokens with all scopes but exec, of at least 16 characters;
                                       several while one is replaced. It replaces the
                                       records of "sortie tokens add --stage", too
  fly      {"token": "..."}            a token that may make machines in the stage's apps
  outputs  {"accountId": "...",        of Cloudflare; or an "endpoint" and a "region"
            "accessKeyId": "...", "secretAccessKey": "...",              both buckets
            "workerAccessKeyId": "...", "workerSecretAccessKey": "..."}  uploads alone
  canary   {"token": "..."}            the client token of the canary, if the stage has one
  traces   {"headers": {"...": "..."}} of the requests that export traces, with traceHeaders
  events   {"seed": "..."}             the key that signs events: at least 43 random letters and
                                       digits. The public parts of older keys stay published

Of their values only the fingerprint is printed: the first six digits of the
SHA-256. Account, region and credentials are those of the AWS command line.`, limit.Secret),
		Example: "  sortie secrets put report-key < key.txt\n" +
			"  echo \"whsec_$(openssl rand -base64 32)\" | sortie secrets put alert-hook\n" +
			"  sortie secrets put fly --stage prod --file fly.json",
		Args:      secretName,
		ValidArgs: secrets.Kinds(),
	}
	at.define(c)
	c.Flags().StringVar(&file, "file", "", "file with the value; by default standard input")
	argument.Must(c.MarkFlagFilename("file"))
	c.RunE = cli.Does(func(ctx context.Context, args []string) error {
		name := args[0]
		ofStage := at.stage != "" && slices.Contains(secrets.Kinds(), name)
		if !ofStage {
			if err := at.check(name); err != nil {
				return err
			}
		} else if err := checkStage(at.stage); err != nil {
			return err
		}
		text, err := a.document(file)
		if err != nil {
			return err
		}
		if !ofStage {
			return a.putJobSecret(ctx, at, name, string(text))
		}
		document, err := secrets.Parse(name, text)
		if err != nil {
			return cli.Wrong("the document is not a valid %s secret:\n%w", name, err)
		}
		return a.putSecret(ctx, at.place, document)
	})
	return c
}

// secretName requires one argument, the name of a secret. The argument may be a secret itself,
// so the error does not contain it.
func secretName(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("got %d arguments, want the name of the secret", len(args))
	}
	return argument.Required(cmd)
}

// document reads the file, or standard input if file is empty.
func (a *Operator) document(file string) (text []byte, err error) {
	source := a.Stdin
	if file != "" {
		opened, err := os.Open(file)
		if err != nil {
			return nil, cli.Missing(file, err)
		}
		defer func() { _ = opened.Close() }()
		source = opened
	}
	text, err = io.ReadAll(io.LimitReader(source, secretLimit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read the document: %w", err)
	case len(text) > secretLimit:
		return nil, cli.Wrong("the document has more than %d bytes", secretLimit)
	}
	return text, nil
}

func (a *Operator) putSecret(ctx context.Context, at place, document secrets.Document) error {
	cfg, err := a.aws(ctx, at)
	if err != nil {
		return err
	}
	name, err := secrets.Put(ctx, cfg, at.stage, document)
	if err != nil {
		return err
	}
	prints := document.Fingerprints()
	if a.JSON {
		return a.Print(map[string]any{"secret": name, "fingerprints": prints})
	}
	a.Note("Wrote %s.", name)
	for _, field := range slices.Sorted(maps.Keys(prints)) {
		if err := a.Say("%s %s\n", prints[field], field); err != nil {
			return err
		}
	}
	return nil
}
