package command

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/shared/adapter/secrets"
)

// secretLimit is the size limit of a secret in bytes (AWS: 65,536).
const secretLimit = 64 << 10

// stageName matches the names of stages.
var stageName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,19}$`)

func checkStage(stage string) error {
	if !stageName.MatchString(stage) {
		return wrong("--stage: malformed name %q, want 1 to 20 lower-case letters, digits and hyphens", stage)
	}
	return nil
}

func (a *app) secrets() *cobra.Command {
	return group("secrets", "Write the secrets of a stage on AWS", a.secretsPut())
}

func (a *app) secretsPut() *cobra.Command {
	stage, file := "", ""
	c := &cobra.Command{
		Use:   "put " + strings.Join(secrets.Kinds(), "|"),
		Short: "Write one of a stage's secrets, from a file or standard input",
		Long: `Write one of the secrets of a deployed stage, sortie/STAGE/NAME in AWS Secrets
Manager. Running functions read the new value within five minutes, or within ten
seconds once the other side refuses the old one.

The document is JSON, read from standard input or from --file, and checked
before it is written:

  clients  {"tokens": ["...", ...]}    bearer tokens with all scopes, of at least 16 characters;
                                       several while one is replaced. It replaces the
                                       records of "sortie tokens add --stage", too
  fly      {"token": "..."}            a token that may make machines in the stage's apps
  outputs  {"accountId": "...",        of Cloudflare; or an "endpoint" and a "region"
            "accessKeyId": "...", "secretAccessKey": "...",              both buckets
            "workerAccessKeyId": "...", "workerSecretAccessKey": "..."}  uploads alone
  canary   {"token": "..."}            the client token of the canary, if the stage has one

No value is printed, only its fingerprint: the first six digits of its SHA-256.
Account, region and credentials are those of the AWS command line.`,
		Example: "  sortie secrets put fly --stage prod --file fly.json\n" +
			"  pass show sortie/clients | sortie secrets put clients --stage prod",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 { // an argument may be a secret: do not repeat it
				return fmt.Errorf("got %d arguments, want the name of the secret: %s", len(args), strings.Join(secrets.Kinds(), ", "))
			}
			return requiredFlags(cmd)
		},
		ValidArgs: secrets.Kinds(),
	}
	c.Flags().StringVar(&stage, "stage", "", "name of the deployed stage (required)")
	c.Flags().StringVar(&file, "file", "", "file with the document; by default standard input")
	require(c, "stage")
	if err := c.MarkFlagFilename("file"); err != nil {
		panic(err) // the flag is defined above
	}
	c.RunE = does(func(ctx context.Context, args []string) error {
		if err := checkStage(stage); err != nil {
			return err
		}
		kind := args[0]
		if !slices.Contains(secrets.Kinds(), kind) { // it may be a secret: do not repeat it
			return wrong("unknown name of a secret%s, want one of %s", didYouMean(kind, secrets.Kinds()), strings.Join(secrets.Kinds(), ", "))
		}
		text, err := a.document(file)
		if err != nil {
			return err
		}
		document, err := secrets.Parse(kind, text)
		if err != nil {
			return wrong("the document is not a valid %s secret:\n%w", kind, err)
		}
		return a.putSecret(ctx, stage, document)
	})
	return c
}

// document reads the file, or standard input without one.
func (a *app) document(file string) (text []byte, err error) {
	source := a.Stdin
	if file != "" {
		opened, err := os.Open(file)
		if err != nil {
			return nil, missing(file, err)
		}
		defer func() { _ = opened.Close() }()
		source = opened
	}
	text, err = io.ReadAll(io.LimitReader(source, secretLimit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read the document: %w", err)
	case len(text) > secretLimit:
		return nil, wrong("the document has more than %d bytes", secretLimit)
	}
	return text, nil
}

func (a *app) putSecret(ctx context.Context, stage string, document secrets.Document) error {
	cfg, err := a.aws(ctx, stage)
	if err != nil {
		return err
	}
	name, err := secrets.Put(ctx, cfg, stage, document)
	if err != nil {
		return err
	}
	prints := document.Fingerprints()
	if a.json {
		return a.print(map[string]any{"secret": name, "fingerprints": prints})
	}
	a.note("Wrote %s.", name)
	for _, field := range slices.Sorted(maps.Keys(prints)) {
		if err := a.say("%s %s\n", prints[field], field); err != nil {
			return err
		}
	}
	return nil
}
