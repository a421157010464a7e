package deployment

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/sortie-dev/sortie/local/proof/suite/clients"
	"github.com/sortie-dev/sortie/shared/adapter/secrets"
	"github.com/sortie-dev/sortie/shared/domain/access"
)

// The tokens of a deployment in LocalStack, for its clients and for the Machines API. They give
// access only to loopback addresses.
const (
	ClientToken   = "localstack-client"
	MachinesToken = "localstack-machines"
)

// Others has the tokens of the other clients of a deployment.
var Others = clients.Others{Stranger: "localstack-stranger", Reader: "localstack-reader"}

// Fill stores the secrets that third parties issue, and the secrets of the suite's jobs. The
// stack itself stores the secret of the outputs.
func (d Deployment) Fill(ctx context.Context) error {
	cfg := aws.Config{
		BaseEndpoint: aws.String(d.Server), Region: Region,
		Credentials: credentials.NewStaticCredentialsProvider(Key, Key, ""),
	}
	for _, document := range []secrets.Document{
		secrets.Clients{Tokens: []string{ClientToken}, Records: Others.Records()}, secrets.Fly{Token: MachinesToken},
	} {
		if _, err := secrets.Put(ctx, cfg, d.Stage, document); err != nil {
			return err
		}
	}
	for name, value := range clients.Secrets() {
		if err := secrets.PutNamed(ctx, cfg, d.Stage, access.Default, name, value); err != nil {
			return err
		}
	}
	return nil
}
