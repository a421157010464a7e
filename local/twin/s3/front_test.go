package s3_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/sortie-dev/sortie/local/twin/s3"
)

// TestUnsupportedOperations calls operations that R2 does not have either.
func TestUnsupportedOperations(t *testing.T) {
	t.Parallel()
	url := start(t, config(t.TempDir())).URL()
	bucket, key := aws.String("uploads"), aws.String("a")
	for name, call := range map[string]func(context.Context, client) error{
		"versioning": func(ctx context.Context, c client) error {
			_, err := c.GetBucketVersioning(ctx, &awss3.GetBucketVersioningInput{Bucket: bucket})
			return err
		},
		"policy": func(ctx context.Context, c client) error {
			_, err := c.PutBucketPolicy(ctx, &awss3.PutBucketPolicyInput{Bucket: bucket, Policy: aws.String("{}")})
			return err
		},
		"delete the bucket": func(ctx context.Context, c client) error {
			_, err := c.Client.DeleteBucket(ctx, &awss3.DeleteBucketInput{Bucket: bucket})
			return err
		},
		"tags": func(ctx context.Context, c client) error {
			_, err := c.GetObjectTagging(ctx, &awss3.GetObjectTaggingInput{Bucket: bucket, Key: key})
			return err
		},
	} {
		wantCode(t, name, call(t.Context(), dial(t, url, owner)), "NotImplemented")
		wantCode(t, name+" as a worker", call(t.Context(), dial(t, url, worker)), "AccessDenied")
	}
	_, err := dial(t, url, owner).PutObject(t.Context(), &awss3.PutObjectInput{Bucket: bucket, Key: key, Body: strings.NewReader("a"), Tagging: aws.String("a=b")})
	wantCode(t, "an object with tags", err, "NotImplemented")
}

// TestKeys stores objects whose keys are escaped in URLs.
func TestKeys(t *testing.T) {
	t.Parallel()
	c := dial(t, start(t, config(t.TempDir())).URL(), worker)
	for _, key := range []string{"a b", "a+b", "a%2Fb", "a%20b", "ä", "a//b", "a/", "a?b#c", "a&b=c", "'a'(b)*!~"} {
		c.put("uploads", key, key)
	}
	for _, key := range []string{"a b", "a+b", "a%2Fb", "a%20b", "ä", "a//b", "a/", "a?b#c", "a&b=c", "'a'(b)*!~"} {
		if got := c.get("uploads", key); got != key {
			t.Errorf("%q: got %q", key, got)
		}
		signed, err := awss3.NewPresignClient(c.Client).PresignGetObject(t.Context(), &awss3.GetObjectInput{Bucket: aws.String("uploads"), Key: &key})
		if err != nil {
			t.Fatal(err)
		}
		if status, text := send(t, request(t, http.MethodGet, signed.URL, "")); status != http.StatusOK || text != key {
			t.Errorf("%q with a presigned URL: got %d %q", key, status, text)
		}
	}
}

// TestHeadersOfAnObject stores an object with headers and reads it with others.
func TestHeadersOfAnObject(t *testing.T) {
	t.Parallel()
	c := dial(t, start(t, config(t.TempDir())).URL(), worker)
	bucket, key := aws.String("uploads"), aws.String("a")
	_, err := c.PutObject(t.Context(), &awss3.PutObjectInput{
		Bucket: bucket, Key: key, Body: strings.NewReader("hello"), ContentType: aws.String("text/plain"), CacheControl: aws.String("no-cache"),
		ContentDisposition: aws.String("attachment"), ContentLanguage: aws.String("de"), Metadata: map[string]string{"run": "a"},
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.GetObject(t.Context(), &awss3.GetObjectInput{
		Bucket: bucket, Key: key, Range: aws.String("bytes=1-2"), ResponseContentType: aws.String("text/html"), ResponseCacheControl: aws.String("private"),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil || string(text) != "el" || *got.ContentRange != "bytes 1-2/5" || *got.ContentType != "text/html" || *got.CacheControl != "private" ||
		*got.ContentDisposition != "attachment" || *got.ContentLanguage != "de" || got.Metadata["run"] != "a" {
		t.Errorf("got %q %+v, %v", text, got, err)
	}
}

// TestWrongChecksums sends a body with the checksum of another one.
func TestWrongChecksums(t *testing.T) {
	t.Parallel()
	c := dial(t, start(t, config(t.TempDir())).URL(), worker)
	for name, in := range map[string]awss3.PutObjectInput{
		"Content-MD5": {ContentMD5: aws.String("XUFAKrxLKna5cZ2REBfFkg==")},
		"MD5":         {ChecksumMD5: aws.String("XUFAKrxLKna5cZ2REBfFkg==")},
		"CRC32C":      {ChecksumCRC32C: aws.String("AAAAAA==")},
		"CRC64NVME":   {ChecksumCRC64NVME: aws.String("AAAAAAAAAAA=")},
		"SHA1":        {ChecksumSHA1: aws.String(strings.Repeat("A", 27) + "=")},
		"SHA256":      {ChecksumSHA256: aws.String(strings.Repeat("A", 43) + "=")},
	} {
		in.Bucket, in.Key, in.Body = aws.String("uploads"), aws.String("a"), strings.NewReader("other")
		_, err := c.PutObject(t.Context(), &in)
		wantCode(t, name, err, "BadDigest")
	}
	listed, err := c.ListObjectsV2(t.Context(), &awss3.ListObjectsV2Input{Bucket: aws.String("uploads")})
	if err != nil || len(listed.Contents) != 0 {
		t.Errorf("got %v, %v, want no object", listed, err)
	}
}

// TestChunkedBody sends a body in chunks, with its checksum after it, as clients do over TLS.
func TestChunkedBody(t *testing.T) {
	t.Parallel()
	url := start(t, config(t.TempDir())).URL()
	const hash = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
	for _, row := range []struct {
		name, body, length string
		want               int
	}{
		{"complete", "5\r\nhello\r\n0\r\nx-amz-checksum-crc32:NhCmhg==\r\n\r\n", "5", http.StatusOK},
		{"another checksum", "5\r\nhello\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n", "5", http.StatusBadRequest},
		{"another length", "5\r\nhello\r\n0\r\nx-amz-checksum-crc32:NhCmhg==\r\n\r\n", "6", http.StatusBadRequest},
		{"incomplete", "5\r\nhel", "5", http.StatusBadRequest},
	} {
		r := request(t, http.MethodPut, url+"/uploads/"+strings.ReplaceAll(row.name, " ", "-"), row.body)
		r.Header.Set("X-Amz-Content-Sha256", hash)
		r.Header.Set("X-Amz-Decoded-Content-Length", row.length)
		r.Header.Set("X-Amz-Trailer", "x-amz-checksum-crc32")
		keys := aws.Credentials{AccessKeyID: worker.ID, SecretAccessKey: worker.Secret}
		if err := v4.NewSigner().SignHTTP(t.Context(), keys, r, hash, "s3", s3.Region, time.Now()); err != nil {
			t.Fatal(err)
		}
		if status, text := send(t, r); status != row.want {
			t.Errorf("%s: got %d %s, want %d", row.name, status, text, row.want)
		}
	}
	if got := dial(t, url, worker).get("uploads", "complete"); got != "hello" {
		t.Errorf("got %q, want hello", got)
	}
}

// TestRefusedUploadIsAnswered sends bodies to operations that refuse them before reading.
func TestRefusedUploadIsAnswered(t *testing.T) {
	t.Parallel()
	c := dial(t, start(t, config(t.TempDir())).URL(), worker)
	for _, size := range []int{1, 200 << 10} {
		_, err := c.PutObject(t.Context(), &awss3.PutObjectInput{
			Bucket: aws.String("kept"), Key: aws.String("a"), Body: strings.NewReader(strings.Repeat("a", size)), ChecksumAlgorithm: types.ChecksumAlgorithmCrc32,
		})
		wantCode(t, "an upload to the other bucket", err, "AccessDenied")
	}
}

func request(t *testing.T, method, url, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// send returns the status and the body of the answer.
func send(t *testing.T, r *http.Request) (int, string) {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	got, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return got.StatusCode, string(text)
}
