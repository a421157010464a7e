package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// checkBucket lists the object store as its owner: outputs by key and size, and
// nothing else.
func (w *world) checkBucket(ctx context.Context, outputs map[string]int64) error {
	text, err := os.ReadFile(filepath.Join(w.folder, "stack.json"))
	if err != nil {
		return fmt.Errorf("cannot read the store's keys: %w", err)
	}
	var memory struct {
		Secrets map[string]string `json:"secrets"`
	}
	if err := json.Unmarshal(text, &memory); err != nil {
		return fmt.Errorf("cannot read the store's keys: %w", err)
	}
	keys := aws.Credentials{AccessKeyID: memory.Secrets["s3-owner-id"], SecretAccessKey: memory.Secrets["s3-owner-secret"]}
	store := s3.New(s3.Options{
		BaseEndpoint: &w.server.addresses.S3, Region: "auto", UsePathStyle: true,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return keys, nil }),
	})
	kept := w.server.addresses.Bucket + "-kept"
	for bucket, want := range map[string]map[string]int64{w.server.addresses.Bucket: {}, kept: outputs} {
		got := map[string]int64{}
		pages := s3.NewListObjectsV2Paginator(store, &s3.ListObjectsV2Input{Bucket: &bucket})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return fmt.Errorf("cannot list %s: %w", bucket, err)
			}
			for _, o := range page.Contents {
				got[*o.Key] = *o.Size
			}
		}
		if !maps.Equal(got, want) {
			w.broken("in %s there is %v, and should be %v", bucket, got, want)
		}
		begun, err := store.ListMultipartUploads(ctx, &s3.ListMultipartUploadsInput{Bucket: &bucket})
		if err != nil {
			return fmt.Errorf("cannot list the uploads to %s: %w", bucket, err)
		}
		for _, u := range begun.Uploads {
			w.broken("in %s an upload of %s is unfinished", bucket, *u.Key)
		}
	}
	return nil
}

// belongs are the files of a data folder that nobody uses.
var belongs = regexp.MustCompile(`^(sortie\.db|sortie\.db\.lock|stack\.json|keys\.pem|` +
	`s3/catalog\.db|s3/catalog\.db\.lock|s3/blobs/[0-9a-f]{2}/[0-9a-f]{32}|` +
	`machines/server\.lock|machines/apps\.json|machines/machines/[0-9a-f]+/(machine\.json|output\.[0-9]+))$`)

// checkDisk looks for files that belong to nothing, and for bytes that no
// output is made of.
func (w *world) checkDisk(outputs map[string]int64) error {
	problems, err := stray(w.folder, outputs)
	for _, problem := range problems {
		w.broken("%s", problem)
	}
	return err
}

func stray(folder string, outputs map[string]int64) (problems []string, err error) {
	blobs, bytes := int64(0), int64(0)
	for _, size := range outputs {
		bytes += size
	}
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if entry.IsDir() {
			if strings.HasSuffix(name, "/tmp") || strings.HasSuffix(name, "/root") {
				problems = append(problems, "a machine's folder is left: "+name)
			}
			return nil
		}
		if !belongs.MatchString(name) {
			problems = append(problems, "a file is left: "+name)
		}
		if strings.HasPrefix(name, "s3/blobs/") {
			info, err := entry.Info()
			if err != nil {
				return err
			}
			blobs += info.Size()
		}
		return nil
	})
	if err != nil {
		return problems, fmt.Errorf("cannot look through the data folder: %w", err)
	}
	if blobs != bytes {
		problems = append(problems, fmt.Sprintf("the store holds %d bytes for outputs of %d", blobs, bytes))
	}
	return problems, nil
}
