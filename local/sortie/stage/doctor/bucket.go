package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/sortie-dev/sortie/local/sortie/template"
	"github.com/sortie-dev/sortie/shared/adapter/secrets"
)

// The minimum days of lifecycle rules. Sortie deletes objects itself, and the rules delete the
// objects that it could not delete. An earlier rule would delete objects in use: an attempt
// takes up to 14 days, and pinned runs stay for up to ten years.
const (
	uploadDays   = 15
	acceptedDays = 3650
)

// probeUpload is the id of an upload that no store has, for an object that may be written.
// Completing it needs the permission to write and changes nothing.
const (
	probeObject = "exports/sortie-doctor"
	probeUpload = "sortie-doctor"
)

// buckets checks that the buckets exist, that Sortie's key can access both, that the workers'
// key can access only the one for uploads, and the lifecycle rules of buckets outside of the
// stack.
func (e *exam) buckets(ctx context.Context) []Finding {
	b := e.plan.Buckets
	if b == nil {
		return nil
	}
	uploads, accepted := b.Uploads, b.Accepted
	if b.Own {
		if f := e.undeployed("bucket"); f != nil {
			return f
		}
		uploads, accepted = e.deployed.Outputs["UploadsBucket"], e.deployed.Outputs["AcceptedBucket"]
	}
	keys, is := e.documents["outputs"].(secrets.Outputs)
	if !is {
		return []Finding{unknown("bucket", "not checked: it needs the secret outputs", "do what its line says")}
	}
	at := e.store(b, keys)
	owner, worker := at.client(keys.AccessKeyID, keys.SecretAccessKey), at.client(keys.WorkerAccessKeyID, keys.WorkerSecretAccessKey)
	found := []Finding{e.bucket(ctx, owner, "uploads", uploads), e.bucket(ctx, owner, "accepted", accepted)}
	exist := found[0].Status == OK && found[1].Status == OK
	if exist || found[0].Status == OK { // otherwise a refusal says nothing about the key
		found = append(found, e.workerKey(ctx, worker, uploads, accepted, exist))
	}
	if b.Own {
		return found
	}
	for i, each := range []struct {
		use, bucket string
		days        int32
	}{{"uploads", uploads, uploadDays}, {"accepted", accepted, acceptedDays}} {
		if found[i].Status == OK {
			found = append(found, e.lifecycle(ctx, owner, each.use, each.bucket, each.days))
		}
	}
	return found
}

// store is an object store without credentials.
type store struct {
	endpoint, region string
	http             *http.Client
}

func (e *exam) store(b *template.Buckets, keys secrets.Outputs) store {
	endpoint := strings.NewReplacer("${Region}", e.AWS.Region, "${URLSuffix}", e.suffix()).Replace(b.Endpoint)
	return store{
		cmp.Or(endpoint, keys.Endpoint, "https://"+keys.AccountID+".r2.cloudflarestorage.com"), cmp.Or(keys.Region, "auto"), e.HTTP,
	}
}

func (s store) client(id, secret string) *s3.Client {
	return s3.New(s3.Options{
		Region: s.region, BaseEndpoint: &s.endpoint, UsePathStyle: true, HTTPClient: s.http, RetryMaxAttempts: 1,
		Credentials:                credentials.NewStaticCredentialsProvider(id, secret, ""),
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired, ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	})
}

// bucket checks that a bucket exists and that Sortie's key may list, read and write it.
func (e *exam) bucket(ctx context.Context, owner *s3.Client, use, name string) Finding {
	check := "bucket " + use
	put := e.put("outputs") + " <outputs.json, with a key of both buckets that reads and writes objects"
	_, err := owner.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &name, MaxKeys: aws.Int32(1)})
	if err == nil {
		err = reads(ctx, owner, name)
	}
	if err == nil {
		err = writes(ctx, owner, name)
	}
	switch refused := code(err); {
	case err == nil:
		return ok(check, "%s: the key of the secret outputs lists, reads and writes it", name)
	case refused == "NoSuchBucket" && e.plan.Buckets.Own:
		return missing(check, name+": it was deleted", e.createBucket(name))
	case refused == "NoSuchBucket":
		return missing(check, name+": there is no such bucket", "npx wrangler r2 bucket create "+name)
	case unknownKey(err):
		return wrong(check, name+": the store does not accept accessKeyId and secretAccessKey of the secret outputs", put)
	case httpStatus(err) == http.StatusForbidden:
		return wrong(check, name+": the key of the secret outputs may not list, read and write it, or it does not exist", put)
	}
	return unknown(check, name+": not checked: "+reason(err), "repeat "+e.again())
}

// createBucket returns the command that recreates a bucket of the stack.
func (e *exam) createBucket(name string) string {
	command := "aws s3api create-bucket --bucket " + name + " --region " + e.AWS.Region
	if e.AWS.Region != "us-east-1" { // this region must not be named
		command += " --create-bucket-configuration LocationConstraint=" + e.AWS.Region
	}
	return command + ", then " + e.deploy()
}

// reads returns an error if the key may not read objects of the bucket.
func reads(ctx context.Context, client *s3.Client, bucket string) error {
	answer, err := client.GetObject(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: aws.String(probeObject)})
	if err == nil {
		return answer.Body.Close()
	}
	if code(err) == "NoSuchKey" {
		return nil
	}
	return err
}

// writes returns an error if the key may not write objects to the bucket.
func writes(ctx context.Context, client *s3.Client, bucket string) error {
	_, err := client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &bucket, Key: aws.String(probeObject), UploadId: aws.String(probeUpload),
		MultipartUpload: &types.CompletedMultipartUpload{Parts: []types.CompletedPart{{PartNumber: aws.Int32(1), ETag: aws.String(`"d41d8cd98f00b204e9800998ecf8427e"`)}}},
	})
	switch status := httpStatus(err); {
	case code(err) == "NoSuchBucket", unknownKey(err):
		return err
	case status == http.StatusNotFound, status == http.StatusBadRequest: // the upload does not exist, so the key was accepted
		return nil
	}
	return err
}

// unknownKey reports whether the error means that the store does not know the key. R2 answers
// 400 for a key of another length.
func unknownKey(err error) bool {
	switch httpStatus(err) {
	case http.StatusUnauthorized:
		return true
	case http.StatusForbidden:
		return code(err) == "InvalidAccessKeyId" || code(err) == "SignatureDoesNotMatch"
	case http.StatusBadRequest:
		text := strings.ToLower(reason(err))
		return strings.Contains(text, "credential") || strings.Contains(text, "access key") || code(err) == "AuthorizationHeaderMalformed"
	}
	return false
}

func httpStatus(err error) int {
	if answer, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
		return answer.HTTPStatusCode()
	}
	return 0
}

// workerKey checks that the workers' key can write only to the uploads bucket. If both is
// false, the other bucket is not usable and only the first half is checked.
func (e *exam) workerKey(ctx context.Context, worker *s3.Client, uploads, accepted string, both bool) Finding {
	const check = "key workers"
	put := e.put("outputs") + " <outputs.json, with a worker key that reads and writes objects of " + uploads + " alone"
	if e.plan.Buckets.Own {
		put = e.deploy()
	}
	switch err := writes(ctx, worker, uploads); {
	case err == nil:
	case unknownKey(err):
		return wrong(check, "the store does not accept workerAccessKeyId and workerSecretAccessKey of the secret outputs", put)
	case httpStatus(err) == http.StatusForbidden:
		return wrong(check, "workerAccessKeyId of the secret outputs may not write "+uploads, put)
	default:
		return unknown(check, "not checked: "+reason(err), "repeat "+e.again())
	}
	if !both {
		return unknown(check, "not checked against the bucket "+accepted, "do what its line says")
	}
	_, listing := worker.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &accepted, MaxKeys: aws.Int32(1)})
	for _, tried := range []struct {
		err     error
		allowed string
	}{{writes(ctx, worker, accepted), "write " + accepted + ", so that a worker could replace accepted outputs"}, {listing, "list " + accepted}} {
		switch {
		case tried.err == nil:
			return wrong(check, "workerAccessKeyId of the secret outputs may "+tried.allowed, put)
		case httpStatus(tried.err) != http.StatusForbidden:
			return unknown(check, "not checked: "+reason(tried.err), "repeat "+e.again())
		}
	}
	return ok(check, "it writes %s, and neither writes nor lists %s", uploads, accepted)
}

// lifecycle checks the lifecycle rules of a bucket outside of the stack.
func (e *exam) lifecycle(ctx context.Context, owner *s3.Client, use, bucket string, days int32) Finding {
	check := "lifecycle " + use
	add := fmt.Sprintf("npx wrangler r2 bucket lifecycle add %s expire --expire-days %d --abort-multipart-days 2 --force", bucket, days)
	answer, err := owner.GetBucketLifecycleConfiguration(ctx, &s3.GetBucketLifecycleConfigurationInput{Bucket: &bucket})
	switch {
	case code(err) == "NoSuchLifecycleConfiguration":
		return missing(check, bucket+": no rule deletes what Sortie could not", add)
	case httpStatus(err) == http.StatusForbidden, httpStatus(err) == http.StatusUnauthorized:
		return unknown(check, bucket+": not checked: the key of the secret outputs may not read the rules, and need not",
			fmt.Sprintf("compare npx wrangler r2 bucket lifecycle list %s with %d days for objects and 2 for unfinished uploads, then pass --skip lifecycle", bucket, days))
	case err != nil:
		return unknown(check, bucket+": not checked: "+reason(err), "repeat "+e.again())
	}
	expire, abort := int32(0), int32(0)
	for _, rule := range answer.Rules {
		if rule.Status != types.ExpirationStatusEnabled {
			continue
		}
		if rule.Expiration != nil && rule.Expiration.Days != nil {
			expire = earliest(expire, *rule.Expiration.Days)
		}
		if rule.AbortIncompleteMultipartUpload != nil {
			abort = earliest(abort, aws.ToInt32(rule.AbortIncompleteMultipartUpload.DaysAfterInitiation))
		}
	}
	switch {
	case expire == 0 || abort == 0:
		return missing(check, bucket+": no rule deletes objects, or none aborts uploads, that Sortie could not", add)
	case expire < days:
		return wrong(check, fmt.Sprintf("%s: a rule deletes objects after %d days, which Sortie may still use", bucket, expire), "remove that rule, then "+add)
	}
	return ok(check, "%s: objects are deleted after %d days, unfinished uploads after %d", bucket, expire, abort)
}

// earliest returns the smaller number of days; 0 means no rule.
func earliest(a, b int32) int32 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
