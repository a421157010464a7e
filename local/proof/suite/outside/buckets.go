package outside

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Buckets accesses the object store with the owner's credentials.
type Buckets struct {
	Endpoint, Region, KeyID, Secret string
	// Uploads is the bucket that workers write to. Accepted is the bucket with accepted
	// outputs.
	Uploads, Accepted string
}

func (b Buckets) client() *s3.Client {
	keys := aws.Credentials{AccessKeyID: b.KeyID, SecretAccessKey: b.Secret}
	return s3.New(s3.Options{
		BaseEndpoint: &b.Endpoint, Region: b.Region, UsePathStyle: true,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return keys, nil }),
	})
}

// Objects returns the sizes of a bucket's objects in bytes, by key.
func (b Buckets) Objects(ctx context.Context, bucket string) (map[string]int64, error) {
	objects := map[string]int64{}
	pages := s3.NewListObjectsV2Paginator(b.client(), &s3.ListObjectsV2Input{Bucket: &bucket})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("cannot list %s: %w", bucket, err)
		}
		for _, o := range page.Contents {
			objects[*o.Key] = *o.Size
		}
	}
	return objects, nil
}

// Logs removes the objects that are kept as long as their runs (logs and inputs) and returns
// them.
func Logs(objects map[string]int64) (logs map[string]int64) {
	logs = map[string]int64{}
	for key, size := range objects {
		if _, rest, _ := strings.Cut(key, "/"); strings.HasPrefix(rest, "logs/") {
			logs[key] = size
			delete(objects, key)
		}
	}
	return logs
}

// Unfinished returns the keys of unfinished multipart uploads.
func (b Buckets) Unfinished(ctx context.Context, bucket string) ([]string, error) {
	uploads, err := b.client().ListMultipartUploads(ctx, &s3.ListMultipartUploadsInput{Bucket: &bucket})
	if err != nil {
		return nil, fmt.Errorf("cannot list the uploads to %s: %w", bucket, err)
	}
	keys := make([]string, 0, len(uploads.Uploads))
	for _, u := range uploads.Uploads {
		keys = append(keys, *u.Key)
	}
	return keys, nil
}
