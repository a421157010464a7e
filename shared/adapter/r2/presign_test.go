package r2_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/sortie-dev/sortie/shared/adapter/r2"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

var signedAt = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// datedSigner signs as of signedAt.
type datedSigner struct{ *v4.Signer }

// PresignHTTP implements the SDK's interface.
func (d datedSigner) PresignHTTP(
	ctx context.Context, keys aws.Credentials, r *http.Request, payload, service, region string, _ time.Time, options ...func(*v4.SignerOptions),
) (string, http.Header, error) {
	return d.Signer.PresignHTTP(ctx, keys, r, payload, service, region, signedAt, options...)
}

// presignClient is the SDK's presign client for a configuration.
func presignClient(cfg r2.Config, endpoint, region string) *awss3.PresignClient {
	sdk := awss3.New(awss3.Options{
		BaseEndpoint: &endpoint, Region: region, UsePathStyle: true,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: cfg.AccessKeyID, SecretAccessKey: cfg.SecretAccessKey}, nil
		}),
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	})
	return awss3.NewPresignClient(sdk, func(o *awss3.PresignOptions) {
		o.Presigner = datedSigner{v4.NewSigner(func(s *v4.SignerOptions) { s.DisableURIPathEscaping = true })}
	})
}

// signing is a configuration that signs as of signedAt.
func signing() r2.Config {
	return r2.Config{
		AccountID: "0123456789abcdef", AccessKeyID: "key-id", SecretAccessKey: "secret", Uploads: "sortie-uploads", Accepted: "sortie.accepted",
		Clock: clock.NewVirtual(signedAt),
	}
}

// TestURLsAreThoseOfTheSDK compares URLs with those of the SDK's presign client.
func TestURLsAreThoseOfTheSDK(t *testing.T) {
	t.Parallel()
	endpoints := []struct{ name, endpoint, region, want, wantRegion string }{
		{"R2", "", "", "https://0123456789abcdef.r2.cloudflarestorage.com", "auto"},
		{"loopback", "http://127.0.0.1:9000", "", "http://127.0.0.1:9000", "auto"},
		{"IPv6", "http://[::1]:9000", "", "http://[::1]:9000", "auto"},
		{"trailing slash", "http://minio.example/", "eu-west-1", "http://minio.example/", "eu-west-1"},
		{"with a path", "https://store.example/s3", "eu-west-1", "https://store.example/s3", "eu-west-1"},
		{"without a region of its own", "https://s3.amazonaws.com", "aws-global", "https://s3.amazonaws.com", "aws-global"},
	}
	keys := []string{
		"exports/t1/a.xml", "a", "/a", "a/", "a//b", "./a/../b", "a b+c", "ä/日本/😀", `a"<>\^{}|%2F%`, "a?b#c&d=e;f", "a:b@c$d,e!f'g(h)i*j~k", "\x01\n\xff",
	}
	dispositions := []string{"", "attachment", `attachment; filename="a _.xml"; filename*=UTF-8''a%20%C3%B6.xml`}
	types := []string{"", "application/xml", "text/plain; charset=utf-8", "application/octet-stream"}
	for _, at := range endpoints {
		t.Run(at.name, func(t *testing.T) {
			t.Parallel()
			cfg := signing()
			cfg.Endpoint, cfg.Region = at.endpoint, at.region
			own, sdk := outputs(t, cfg), presignClient(cfg, at.want, at.wantRegion)
			for _, key := range keys {
				for i, contentType := range types {
					ttl := []time.Duration{time.Second, time.Hour, 90*time.Second + time.Millisecond, 7 * 24 * time.Hour}[i]
					for _, disposition := range dispositions {
						want, err := sdk.PresignGetObject(t.Context(), &awss3.GetObjectInput{
							Bucket: &cfg.Accepted, Key: &key, ResponseContentDisposition: &disposition, ResponseContentType: &contentType,
						}, awss3.WithPresignExpires(ttl))
						wantURL(t, want, err, func() (string, error) { return own.PresignGet(t.Context(), key, disposition, contentType, ttl) })
					}
					put := &awss3.PutObjectInput{Bucket: &cfg.Uploads, Key: &key}
					if contentType != "" {
						put.ContentType = &contentType
					}
					want, err := sdk.PresignPutObject(t.Context(), put, awss3.WithPresignExpires(ttl))
					wantURL(t, want, err, func() (string, error) { return own.PresignPut(t.Context(), key, contentType, ttl) })
				}
			}
			if _, err := own.PresignPut(t.Context(), "", "text/plain", time.Hour); err == nil {
				t.Error("got a URL for the empty key, want an error")
			}
		})
	}
}

func wantURL(t *testing.T, want *v4.PresignedHTTPRequest, failed error, sign func() (string, error)) {
	t.Helper()
	if failed != nil {
		t.Fatal(failed)
	}
	for range 2 { // the second one has a known endpoint
		if got, err := sign(); err != nil || got != want.URL {
			t.Errorf("got %s, %v\nwant %s", got, err, want.URL)
		}
	}
}

// TestURLsFollowTheKeys changes the keys and the endpoint while the process runs.
func TestURLsFollowTheKeys(t *testing.T) {
	t.Parallel()
	cfg := signing()
	now := r2.Keys{}
	cfg.Current = func(context.Context) (r2.Keys, error) { return now, nil }
	own := outputs(t, cfg)
	for _, now = range []r2.Keys{
		{Endpoint: "https://one.example", AccessKeyID: "a", SecretAccessKey: "b"},
		{Endpoint: "https://one.example", AccessKeyID: "c", SecretAccessKey: "d"},
		{Endpoint: "https://two.example", AccessKeyID: "c", SecretAccessKey: "d"},
		{Endpoint: "https://one.example", AccessKeyID: "c", SecretAccessKey: "d", Region: "eu-west-1"},
		{AccountID: "fedcba", AccessKeyID: "a", SecretAccessKey: "b"},
	} {
		endpoint, region := now.Endpoint, now.Region
		if endpoint == "" {
			endpoint = "https://fedcba.r2.cloudflarestorage.com"
		}
		if region == "" {
			region = "auto"
		}
		key, contentType, with := "a", "text/plain", cfg
		with.AccessKeyID, with.SecretAccessKey = now.AccessKeyID, now.SecretAccessKey
		want, err := presignClient(with, endpoint, region).PresignPutObject(t.Context(), &awss3.PutObjectInput{Bucket: &cfg.Uploads, Key: &key, ContentType: &contentType}, awss3.WithPresignExpires(time.Hour))
		wantURL(t, want, err, func() (string, error) { return own.PresignPut(t.Context(), key, contentType, time.Hour) })
	}
	now = r2.Keys{}
	if _, err := own.PresignPut(t.Context(), "a", "text/plain", time.Hour); err == nil {
		t.Error("got a URL without keys, want an error")
	}
}

func BenchmarkPresignPut(b *testing.B) {
	own, err := r2.New(signing())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := own.PresignPut(b.Context(), "exports/export_mods_1772352000000_9f3a/a.xml", "application/xml", time.Hour); err != nil {
			b.Fatal(err)
		}
	}
}
