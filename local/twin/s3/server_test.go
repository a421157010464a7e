package s3_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"github.com/sortie-dev/sortie/local/twin/s3"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

var (
	owner  = s3.Keys{ID: "owner", Secret: "owner-secret"}
	worker = s3.Keys{ID: "worker", Secret: "worker-secret"}
)

func config(dir string) s3.Config {
	return s3.Config{Dir: dir, Uploads: "uploads", Accepted: "kept", Owner: owner, Worker: worker}
}

func start(t *testing.T, cfg s3.Config) *s3.Server {
	t.Helper()
	server, err := s3.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop(context.Background()) })
	return server
}

// client is an S3 client with the keys of one account.
type client struct {
	*awss3.Client
	t *testing.T
}

func dial(t *testing.T, url string, keys s3.Keys) client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return client{awss3.New(awss3.Options{
		BaseEndpoint: &url, Region: s3.Region, UsePathStyle: true, HTTPClient: &http.Client{Transport: transport},
		RetryMaxAttempts: 1,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: keys.ID, SecretAccessKey: keys.Secret}, nil
		}),
	}), t}
}

func (c client) put(bucket, key, body string) {
	c.t.Helper()
	_, err := c.PutObject(c.t.Context(), &awss3.PutObjectInput{Bucket: &bucket, Key: &key, Body: strings.NewReader(body)})
	if err != nil {
		c.t.Fatalf("cannot put %s/%s: %v", bucket, key, err)
	}
}

func (c client) get(bucket, key string) string {
	c.t.Helper()
	got, err := c.GetObject(c.t.Context(), &awss3.GetObjectInput{Bucket: &bucket, Key: &key})
	if err != nil {
		c.t.Fatalf("cannot get %s/%s: %v", bucket, key, err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(text)
}

func (c client) begin(bucket, key string) *string {
	c.t.Helper()
	begun, err := c.CreateMultipartUpload(c.t.Context(), &awss3.CreateMultipartUploadInput{Bucket: &bucket, Key: &key})
	if err != nil {
		c.t.Fatal(err)
	}
	return begun.UploadId
}

func (c client) part(bucket, key string, upload *string, number int32, body []byte) types.CompletedPart {
	c.t.Helper()
	sent, err := c.UploadPart(c.t.Context(), &awss3.UploadPartInput{
		Bucket: &bucket, Key: &key, UploadId: upload, PartNumber: &number, Body: bytes.NewReader(body),
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return types.CompletedPart{PartNumber: &number, ETag: sent.ETag}
}

// wantCode compares an error with a code of the S3 API; "" means no error.
func wantCode(t *testing.T, what string, err error, want string) {
	t.Helper()
	got := ""
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		got = api.ErrorCode()
	} else if err != nil {
		got = err.Error()
	}
	if got != want {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// blobs returns the names of the blob files.
func blobs(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(filepath.Join(dir, "blobs"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestObjectsAndUploadsSurviveRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := start(t, config(dir))
	c := dial(t, server.URL(), owner)
	c.put("uploads", "exports/t1/a", "hello")
	upload := c.begin("uploads", "exports/t1/b")
	first := c.part("uploads", "exports/t1/b", upload, 1, []byte("before the restart"))
	if err := server.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	c = dial(t, start(t, config(dir)).URL(), owner)
	if got := c.get("uploads", "exports/t1/a"); got != "hello" {
		t.Errorf("after the restart: got %q", got)
	}
	_, err := c.CompleteMultipartUpload(t.Context(), &awss3.CompleteMultipartUploadInput{
		Bucket: aws.String("uploads"), Key: aws.String("exports/t1/b"), UploadId: upload,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: []types.CompletedPart{first}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.get("uploads", "exports/t1/b"); got != "before the restart" {
		t.Errorf("upload across the restart: got %q", got)
	}
}

func TestStartRemovesLeftovers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := config(dir)
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	cfg.Clock = clock.NewVirtual(now)
	server := start(t, cfg)
	c := dial(t, server.URL(), owner)
	c.put("uploads", "exports/t1/a", "hello")
	c.part("uploads", "exports/t1/b", c.begin("uploads", "exports/t1/b"), 1, []byte("never finished"))
	if err := server.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	planted := blobs(t, dir)[0] + "0"
	writeFile(t, planted, "incomplete body")
	for _, test := range []struct {
		after time.Duration
		want  int
	}{{6 * 24 * time.Hour, 2}, {8 * 24 * time.Hour, 1}} {
		cfg.Clock = clock.NewVirtual(now.Add(test.after))
		server := start(t, cfg)
		if got := blobs(t, dir); len(got) != test.want {
			t.Errorf("after %v: got %d blobs, want %d", test.after, len(got), test.want)
		}
		if got := dial(t, server.URL(), owner).get("uploads", "exports/t1/a"); got != "hello" {
			t.Errorf("after %v: got %q", test.after, got)
		}
		if err := server.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDeleteFreesBlobs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := dial(t, start(t, config(dir)).URL(), owner)
	c.put("uploads", "a", "one")
	c.put("uploads", "a", "two")
	_, err := c.CopyObject(t.Context(), &awss3.CopyObjectInput{Bucket: aws.String("kept"), Key: aws.String("a"), CopySource: aws.String("uploads/a")})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(blobs(t, dir)); n != 1 {
		t.Errorf("an object and its copy: got %d blobs, want 1", n)
	}
	upload := c.begin("uploads", "b")
	c.part("uploads", "b", upload, 1, []byte("first"))
	c.part("uploads", "b", upload, 1, []byte("second"))
	if n := len(blobs(t, dir)); n != 2 {
		t.Errorf("with a part that was sent twice: got %d blobs, want 2", n)
	}
	_, err = c.AbortMultipartUpload(t.Context(), &awss3.AbortMultipartUploadInput{Bucket: aws.String("uploads"), Key: aws.String("b"), UploadId: upload})
	if err != nil {
		t.Fatal(err)
	}
	for _, bucket := range []string{"uploads", "kept"} {
		if got := c.get(bucket, "a"); got != "two" {
			t.Errorf("%s: got %q", bucket, got)
		}
		if _, err := c.DeleteObject(t.Context(), &awss3.DeleteObjectInput{Bucket: &bucket, Key: aws.String("a")}); err != nil {
			t.Fatal(err)
		}
	}
	if left := blobs(t, dir); len(left) != 0 {
		t.Errorf("leftovers: %v", left)
	}
}

func TestReaderSurvivesDelete(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := dial(t, start(t, config(dir)).URL(), owner)
	big := strings.Repeat("0123456789abcdef", 1<<20)
	c.put("uploads", "a", big)
	got, err := c.GetObject(t.Context(), &awss3.GetObjectInput{Bucket: aws.String("uploads"), Key: aws.String("a")})
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	c.put("uploads", "a", "another")
	read, err := io.ReadAll(got.Body)
	if err != nil || string(read) != big {
		t.Errorf("got %d of %d bytes, %v", len(read), len(big), err)
	}
	if now := c.get("uploads", "a"); now != "another" {
		t.Errorf("got %q", now)
	}
}

func TestStartValidation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	running := start(t, config(dir))
	tests := []struct {
		name   string
		change func(*s3.Config)
		want   string
	}{
		{"no directory", func(c *s3.Config) { c.Dir = "" }, "directory"},
		{"one bucket", func(c *s3.Config) { c.Accepted = c.Uploads }, "two buckets"},
		{"one account", func(c *s3.Config) { c.Worker = c.Owner }, "two accounts"},
		{"every interface", func(c *s3.Config) { c.Addr = "0.0.0.0:0" }, "loopback"},
		{"no port", func(c *s3.Config) { c.Addr = "127.0.0.1" }, "port"},
		{"an address in use", func(c *s3.Config) { c.Addr = strings.TrimPrefix(running.URL(), "http://") }, "in use"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			cfg := config(t.TempDir())
			test.change(&cfg)
			if _, err := s3.Start(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("a directory in use", func(t *testing.T) {
		t.Parallel()
		if _, err := s3.Start(t.Context(), config(dir)); !errors.Is(err, sqlite.ErrInUse) {
			t.Errorf("got %v", err)
		}
	})
}

func TestListingPages(t *testing.T) {
	t.Parallel()
	c := dial(t, start(t, config(t.TempDir())).URL(), owner)
	for _, key := range []string{"b/1", "a", "b/2", "b/c/1", "b", "c", "b/2x", "b-"} {
		c.put("uploads", key, key)
	}
	tests := []struct {
		name, prefix, delimiter, after string
		keys, prefixes                 string
	}{
		{"all", "", "", "", "a b b- b/1 b/2 b/2x b/c/1 c", ""},
		{"a prefix", "b/", "", "", "b/1 b/2 b/2x b/c/1", ""},
		{"a key as prefix", "b/2", "", "", "b/2 b/2x", ""},
		{"folders", "", "/", "", "a b b- c", "b/"},
		{"a folder", "b/", "/", "", "b/1 b/2 b/2x", "b/c/"},
		{"after a key", "", "", "b/2", "b/2x b/c/1 c", ""},
		{"nothing", "x", "", "", "", ""},
	}
	for _, test := range tests {
		for _, size := range []int32{1, 2, 3, 1000} {
			var keys, prefixes []string
			pages := awss3.NewListObjectsV2Paginator(c, &awss3.ListObjectsV2Input{
				Bucket: aws.String("uploads"), Prefix: &test.prefix, Delimiter: &test.delimiter, StartAfter: &test.after, MaxKeys: &size,
			})
			for pages.HasMorePages() {
				page, err := pages.NextPage(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if n := len(page.Contents) + len(page.CommonPrefixes); n > int(size) {
					t.Errorf("%s: a page of %d: got %d", test.name, size, n)
				}
				for _, object := range page.Contents {
					keys = append(keys, *object.Key)
				}
				for _, prefix := range page.CommonPrefixes {
					prefixes = append(prefixes, *prefix.Prefix)
				}
			}
			if got := strings.Join(keys, " "); got != test.keys {
				t.Errorf("%s, pages of %d: keys %s, want %s", test.name, size, got, test.keys)
			}
			if got := strings.Join(prefixes, " "); got != test.prefixes {
				t.Errorf("%s, pages of %d: prefixes %s, want %s", test.name, size, got, test.prefixes)
			}
		}
	}
}

func TestUploadListingPages(t *testing.T) {
	t.Parallel()
	c := dial(t, start(t, config(t.TempDir())).URL(), owner)
	for _, key := range []string{"a/1", "a/1", "a/1", "a/2", "b/1"} {
		c.begin("uploads", key)
	}
	for _, size := range []int32{1, 2, 1000} {
		seen := map[string]int{}
		pages := awss3.NewListMultipartUploadsPaginator(c, &awss3.ListMultipartUploadsInput{
			Bucket: aws.String("uploads"), Prefix: aws.String("a/"), MaxUploads: &size,
		})
		for pages.HasMorePages() {
			page, err := pages.NextPage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, upload := range page.Uploads {
				seen[*upload.Key+*upload.UploadId]++
			}
		}
		if len(seen) != 4 {
			t.Errorf("pages of %d: got %s", size, fmt.Sprint(seen))
		}
	}
}

// TestPreviousAddress checks that a server starts at the previous address, or at another one if
// that is in use.
func TestPreviousAddress(t *testing.T) {
	t.Parallel()
	for range 5 { // another process may take the address meanwhile
		dir := t.TempDir()
		server := start(t, config(dir))
		url := server.URL()
		cfg := config(t.TempDir())
		cfg.Previous = strings.TrimPrefix(url, "http://")
		if other := start(t, cfg); other.URL() == url {
			t.Errorf("got the taken address %s", url)
		}
		if err := server.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		cfg.Dir = dir
		if again := start(t, cfg); again.URL() == url {
			return
		}
	}
	t.Error("got another address each time, want the previous one")
}

// TestStopAtOnce stops servers before they have accepted a connection.
func TestStopAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 200 {
		server, err := s3.Start(t.Context(), config(dir))
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
