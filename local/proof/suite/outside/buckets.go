package outside

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Buckets is the object store, seen by its owner.
type Buckets struct {
	Endpoint, Region, KeyID, Secret string
	// Uploads is where workers write, Kept where what was accepted lies.
	Uploads, Accepted string
}

func (b Buckets) client() *s3.Client {
	keys := aws.Credentials{AccessKeyID: b.KeyID, SecretAccessKey: b.Secret}
	return s3.New(s3.Options{
		BaseEndpoint: &b.Endpoint, Region: b.Region, UsePathStyle: true,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return keys, nil }),
	})
}

// Objects lists a bucket: sizes in bytes by key.
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

// Logs takes the logs that Sortie has kept out of the objects, and gives them.
func Logs(objects map[string]int64) (logs map[string]int64) {
	logs = map[string]int64{}
	for key, size := range objects {
		if _, rest, _ := strings.Cut(key, "/"); strings.HasPrefix(rest, "logs/") && strings.HasSuffix(key, ".log") {
			logs[key] = size
			delete(objects, key)
		}
	}
	return logs
}

// Unfinished lists the keys of uploads in parts that nobody has ended.
func (b Buckets) Unfinished(ctx context.Context, bucket string) ([]string, error) {
	begun, err := b.client().ListMultipartUploads(ctx, &s3.ListMultipartUploadsInput{Bucket: &bucket})
	if err != nil {
		return nil, fmt.Errorf("cannot list the uploads to %s: %w", bucket, err)
	}
	keys := make([]string, 0, len(begun.Uploads))
	for _, u := range begun.Uploads {
		keys = append(keys, *u.Key)
	}
	return keys, nil
}
