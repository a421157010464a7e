package s3_test

import (
	"bytes"
	"errors"
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

func TestWorkerAccess(t *testing.T) {
	t.Parallel()
	url := start(t, config(t.TempDir())).URL()
	ours, workers := dial(t, url, owner), dial(t, url, worker)
	ours.put("kept", "a", "accepted")
	workers.put("uploads", "a", "hello")
	if got := workers.get("uploads", "a"); got != "hello" {
		t.Errorf("uploads bucket: got %q", got)
	}
	ctx, accepted, uploads, key := t.Context(), aws.String("kept"), aws.String("uploads"), aws.String("a")
	calls := map[string]func() error{
		"put": func() error {
			_, err := workers.PutObject(ctx, &awss3.PutObjectInput{Bucket: accepted, Key: key, Body: strings.NewReader("forged")})
			return err
		},
		"get": func() error {
			_, err := workers.GetObject(ctx, &awss3.GetObjectInput{Bucket: accepted, Key: key})
			return err
		},
		"delete": func() error {
			_, err := workers.DeleteObject(ctx, &awss3.DeleteObjectInput{Bucket: accepted, Key: key})
			return err
		},
		"delete many": func() error {
			_, err := workers.DeleteObjects(ctx, &awss3.DeleteObjectsInput{Bucket: accepted, Delete: &types.Delete{Objects: []types.ObjectIdentifier{{Key: key}}}})
			return err
		},
		"list": func() error {
			_, err := workers.ListObjectsV2(ctx, &awss3.ListObjectsV2Input{Bucket: accepted})
			return err
		},
		"upload in parts": func() error {
			_, err := workers.CreateMultipartUpload(ctx, &awss3.CreateMultipartUploadInput{Bucket: accepted, Key: key})
			return err
		},
		"list uploads": func() error {
			_, err := workers.ListMultipartUploads(ctx, &awss3.ListMultipartUploadsInput{Bucket: accepted})
			return err
		},
		"copy to": func() error {
			_, err := workers.CopyObject(ctx, &awss3.CopyObjectInput{Bucket: accepted, Key: key, CopySource: aws.String("uploads/a")})
			return err
		},
		"copy from": func() error {
			_, err := workers.CopyObject(ctx, &awss3.CopyObjectInput{Bucket: uploads, Key: key, CopySource: aws.String("kept/a")})
			return err
		},
		"copy a part from": func() error {
			_, err := workers.UploadPartCopy(ctx, &awss3.UploadPartCopyInput{
				Bucket: uploads, Key: key, UploadId: workers.begin("uploads", "a"), PartNumber: aws.Int32(1), CopySource: aws.String("kept/a"),
			})
			return err
		},
		"change the rules": func() error {
			_, err := workers.PutBucketPolicy(ctx, &awss3.PutBucketPolicyInput{Bucket: uploads, Policy: aws.String("{}")})
			return err
		},
	}
	for name, call := range calls {
		if name == "delete many" { // the answer has one result per key
			_ = call()
			continue
		}
		wantCode(t, name, call(), "AccessDenied")
	}
	if got := ours.get("kept", "a"); got != "accepted" {
		t.Errorf("accepted object: got %q", got)
	}
	if got := ours.get("uploads", "a"); got != "hello" {
		t.Errorf("worker's object: got %q", got)
	}
	listed, err := workers.ListBuckets(ctx, &awss3.ListBucketsInput{})
	if err != nil || len(listed.Buckets) != 1 || *listed.Buckets[0].Name != "uploads" {
		t.Errorf("worker's buckets: got %v, %v", listed, err)
	}
}

func TestUnknownClientsAreRefused(t *testing.T) {
	t.Parallel()
	url := start(t, config(t.TempDir())).URL()
	dial(t, url, owner).put("uploads", "a", "hello")
	get := &awss3.GetObjectInput{Bucket: aws.String("uploads"), Key: aws.String("a")}
	_, err := dial(t, url, s3.Keys{ID: "unknown", Secret: "secret"}).GetObject(t.Context(), get)
	wantCode(t, "an unknown account", err, "InvalidAccessKeyId")
	_, err = dial(t, url, s3.Keys{ID: owner.ID, Secret: "guessed"}).GetObject(t.Context(), get)
	wantCode(t, "a wrong secret", err, "SignatureDoesNotMatch")
	_, err = dial(t, url, owner).GetObject(t.Context(), &awss3.GetObjectInput{Bucket: aws.String("elsewhere"), Key: aws.String("a")})
	wantCode(t, "another bucket", err, "NoSuchBucket")

	requests := map[string]func(*http.Request){
		"unsigned": func(*http.Request) {},
		"signed an hour ago": func(r *http.Request) {
			keys := aws.Credentials{AccessKeyID: owner.ID, SecretAccessKey: owner.Secret}
			r.Header.Set("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD")
			err := v4.NewSigner().SignHTTP(t.Context(), keys, r, "UNSIGNED-PAYLOAD", "s3", s3.Region, time.Now().Add(-time.Hour))
			if err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, sign := range requests {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/uploads/a", nil)
		if err != nil {
			t.Fatal(err)
		}
		sign(request)
		transport := &http.Transport{}
		t.Cleanup(transport.CloseIdleConnections)
		answer, err := transport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.Body.Close() != nil {
			t.Fatal(err)
		}
		if answer.StatusCode != http.StatusForbidden || bytes.Contains(text, []byte("hello")) {
			t.Errorf("%s: answered %d %s", name, answer.StatusCode, text)
		}
	}
}

func TestConditions(t *testing.T) {
	t.Parallel()
	c := dial(t, start(t, config(t.TempDir())).URL(), owner)
	c.put("uploads", "a", "hello")
	bucket, key := aws.String("uploads"), aws.String("a")
	head, err := c.HeadObject(t.Context(), &awss3.HeadObjectInput{Bucket: bucket, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	other := aws.String(`"0123456789abcdef0123456789abcdef"`)
	get := func(in awss3.GetObjectInput) error {
		in.Bucket, in.Key = bucket, key
		got, err := c.GetObject(t.Context(), &in)
		if err == nil {
			err = got.Body.Close()
		}
		return err
	}
	put := func(in awss3.PutObjectInput) error {
		in.Bucket, in.Key, in.Body = bucket, key, strings.NewReader("hello")
		_, err := c.PutObject(t.Context(), &in)
		return err
	}
	wantCode(t, "get if match", get(awss3.GetObjectInput{IfMatch: head.ETag}), "")
	wantCode(t, "get if match of another", get(awss3.GetObjectInput{IfMatch: other}), "PreconditionFailed")
	wantCode(t, "get if none match", get(awss3.GetObjectInput{IfNoneMatch: head.ETag}), "NotModified")
	wantCode(t, "get a range after the end", get(awss3.GetObjectInput{Range: aws.String("bytes=5-")}), "InvalidRange")
	wantCode(t, "put if none match", put(awss3.PutObjectInput{IfNoneMatch: aws.String("*")}), "PreconditionFailed")
	wantCode(t, "put if match of another", put(awss3.PutObjectInput{IfMatch: other}), "PreconditionFailed")
	wantCode(t, "put if match", put(awss3.PutObjectInput{IfMatch: head.ETag}), "")
	wantCode(t, "put with a wrong checksum", put(awss3.PutObjectInput{ChecksumCRC32: aws.String("AAAAAA==")}), "BadDigest")
	if got := c.get("uploads", "a"); got != "hello" {
		t.Errorf("got %q", got)
	}
}

func TestCompleteChecksParts(t *testing.T) {
	t.Parallel()
	c := dial(t, start(t, config(t.TempDir())).URL(), worker)
	const key = "exports/t1/a"
	upload := c.begin("uploads", key)
	big := bytes.Repeat([]byte("0123456789abcdef"), 5<<20/16)
	one, two, three := c.part("uploads", key, upload, 1, big), c.part("uploads", key, upload, 2, big[:100]), c.part("uploads", key, upload, 3, []byte("end"))
	complete := func(id *string, parts ...types.CompletedPart) error {
		_, err := c.CompleteMultipartUpload(t.Context(), &awss3.CompleteMultipartUploadInput{
			Bucket: aws.String("uploads"), Key: aws.String(key), UploadId: id, MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
		})
		return err
	}
	forged := types.CompletedPart{PartNumber: aws.Int32(1), ETag: three.ETag}
	missing := types.CompletedPart{PartNumber: aws.Int32(9), ETag: three.ETag}
	wantCode(t, "out of order", complete(upload, three, one), "InvalidPartOrder")
	wantCode(t, "another part", complete(upload, forged), "InvalidPart")
	wantCode(t, "missing part", complete(upload, one, missing), "InvalidPart")
	wantCode(t, "a small part in the middle", complete(upload, one, two, three), "EntityTooSmall")
	wantCode(t, "no such upload", complete(aws.String("0b5e4f0c-0000-4000-8000-000000000000"), one), "NoSuchUpload")
	wantCode(t, "part left out", complete(upload, one, three), "")
	if got := c.get("uploads", key); got != string(big)+"end" {
		t.Errorf("got an object of %d bytes", len(got))
	}
	wantCode(t, "a second time", complete(upload, one, three), "NoSuchUpload")
}

func TestIncompleteBody(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	url := start(t, config(dir)).URL()
	signed, err := awss3.NewPresignClient(dial(t, url, owner).Client).PresignPutObject(t.Context(), &awss3.PutObjectInput{
		Bucket: aws.String("uploads"), Key: aws.String("a"),
	})
	if err != nil {
		t.Fatal(err)
	}
	body, sender := io.Pipe()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, signed.URL, body)
	if err != nil {
		t.Fatal(err)
	}
	request.ContentLength = 1 << 20
	go func() {
		_, _ = sender.Write(make([]byte, 100_000))
		_ = sender.CloseWithError(errors.New("the sender left")) // closes the connection
	}()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	if answer, err := transport.RoundTrip(request); err == nil {
		_ = answer.Body.Close()
		t.Fatal("an incomplete body was answered")
	}
	c := dial(t, url, owner)
	_, err = c.HeadObject(t.Context(), &awss3.HeadObjectInput{Bucket: aws.String("uploads"), Key: aws.String("a")})
	wantCode(t, "incomplete object", err, "NotFound")
}
