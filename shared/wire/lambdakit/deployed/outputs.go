package deployed

import (
	"cmp"
	"context"

	"github.com/sortie-dev/sortie/shared/adapter/r2"
	"github.com/sortie-dev/sortie/shared/adapter/secrets"
	"github.com/sortie-dev/sortie/shared/app/grants"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

// Outputs returns the buckets SORTIE_UPLOADS_BUCKET and SORTIE_ACCEPTED_BUCKET, in R2 or
// another S3 API, with the keys of SORTIE_SECRET_OUTPUTS. SORTIE_OUTPUTS_ENDPOINT overrides the
// endpoint of the secret. worker returns the bucket and keys for a worker. Those keys can
// access only the bucket for uploads.
func Outputs(p *process.Process) (outputs port.Outputs, worker grants.BucketSource) {
	uploads, endpoint := p.Need("SORTIE_UPLOADS_BUCKET"), p.Option("SORTIE_OUTPUTS_ENDPOINT", "")
	secret, err := secrets.Open[secrets.Outputs](p.AWS(), p.Need("SORTIE_SECRET_OUTPUTS"), secrets.Config{Clock: p.Clock(), Log: p.Log})
	p.Check(err)
	outputs, err = r2.New(r2.Config{
		Uploads: uploads, Accepted: p.Need("SORTIE_ACCEPTED_BUCKET"), Clock: p.Clock(),
		Current: func(ctx context.Context) (r2.Keys, error) {
			s, err := secret.Get(ctx)
			return r2.Keys{
				Endpoint: cmp.Or(endpoint, s.Endpoint), AccountID: s.AccountID, Region: s.Region,
				AccessKeyID: s.AccessKeyID, SecretAccessKey: s.SecretAccessKey,
			}, err
		},
	})
	p.Check(err)
	return outputs, func(ctx context.Context) (grants.WorkerBucket, error) {
		s, err := secret.Get(ctx)
		return grants.WorkerBucket{
			Endpoint: cmp.Or(endpoint, s.Endpoint), AccountID: s.AccountID, Region: s.Region, Bucket: uploads,
			AccessKeyID: s.WorkerAccessKeyID, SecretAccessKey: s.WorkerSecretAccessKey,
		}, err
	}
}
