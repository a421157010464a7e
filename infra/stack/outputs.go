package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/jsii-runtime-go"

	"github.com/sortie-dev/sortie/shared/adapter/secrets"
)

// The backstop of the buckets: Sortie deletes by itself, a lifecycle rule has
// what it could not. Uploads are nobody's after an attempt's end.
const (
	uploadDays = 15 // an attempt takes at most 14
	brokenDays = 2
	keptDays   = 366 // the longest retention, and a day
)

// What lies in the buckets: outputs and what else workers write, under
// exports/, and in the second one the logs of each tenant.
const (
	exportsObjects = "exports/*"
	logObjects     = "*/logs/*"
)

// buckets are where outputs lie.
type buckets struct{ uploads, kept, endpoint string }

// addOutputs names the buckets, or makes them.
//
// With s3 it also makes two users, because a presigned URL of a role's session
// ends with that session, and because workers run elsewhere: Sortie's own, and
// the worker's, which writes under exports/ and can neither read nor list. Their
// keys go from IAM into the secret by reference; nobody sees them.
func (h *house) addOutputs() {
	if h.settings.Outputs == R2 {
		h.buckets = buckets{h.settings.UploadsBucket, h.settings.KeptBucket, h.settings.OutputsEndpoint}
		return
	}
	uploads := h.newBucket("Uploads", uploadDays)
	kept := h.newBucket("Kept", keptDays)
	h.buckets = buckets{*uploads.BucketName(), *kept.BucketName(), "https://s3." + *h.stack.Region() + "." + *h.stack.UrlSuffix()}
	if h.settings.LocalStack != "" {
		h.buckets.endpoint = h.settings.LocalStack
	}
	if h.settings.OutputsEndpoint != "" {
		h.buckets.endpoint = h.settings.OutputsEndpoint
	}
	inside := func(b awss3.Bucket, objects string) string { return *b.BucketArn() + "/" + objects }
	owner := h.newBucketUser("OutputsUser",
		statement{[]string{"s3:AbortMultipartUpload", "s3:DeleteObject", "s3:GetObject", "s3:PutObject"}, []string{
			inside(uploads, exportsObjects), inside(kept, exportsObjects), inside(kept, logObjects),
		}},
		statement{[]string{"s3:ListMultipartUploadParts"}, []string{inside(kept, exportsObjects)}},
		statement{[]string{"s3:ListBucket", "s3:ListBucketMultipartUploads"}, []string{*uploads.BucketArn(), *kept.BucketArn()}},
	)
	worker := h.newBucketUser("WorkerUser",
		statement{[]string{"s3:AbortMultipartUpload", "s3:PutObject"}, []string{inside(uploads, exportsObjects)}},
	)
	keys := secrets.Outputs{
		Region: *h.stack.Region(), AccessKeyID: *owner.Ref(), SecretAccessKey: *owner.AttrSecretAccessKey(),
		WorkerAccessKeyID: *worker.Ref(), WorkerSecretAccessKey: *worker.AttrSecretAccessKey(),
	}
	if h.settings.LocalStack != "" { // it checks signatures with this key alone
		keys.AccessKeyID, keys.SecretAccessKey = "test", "test"
		keys.WorkerAccessKeyID, keys.WorkerSecretAccessKey = "test", "test"
	}
	h.secrets.fill(keys)
}

// newBucket makes a bucket that nobody reads but with credentials.
func (h *house) newBucket(id string, days int) awss3.Bucket {
	return awss3.NewBucket(h.stack, jsii.String(id), &awss3.BucketProps{
		BlockPublicAccess: awss3.BlockPublicAccess_BLOCK_ALL(),
		ObjectOwnership:   awss3.ObjectOwnership_BUCKET_OWNER_ENFORCED,
		Encryption:        awss3.BucketEncryption_S3_MANAGED,
		EnforceSSL:        jsii.Bool(true),
		MinimumTLSVersion: jsii.Number(1.2),
		RemovalPolicy:     h.removal(),
		LifecycleRules: &[]*awss3.LifecycleRule{{
			Id:                                  jsii.String("backstop"),
			Expiration:                          awscdk.Duration_Days(num(days)),
			AbortIncompleteMultipartUploadAfter: awscdk.Duration_Days(num(brokenDays)),
		}},
	})
}

// newBucketUser makes a user who may do that alone, and a key of theirs.
func (h *house) newBucketUser(id string, allow ...statement) awsiam.CfnAccessKey {
	user := awsiam.NewCfnUser(h.stack, jsii.String(id), &awsiam.CfnUserProps{
		Policies: []any{&awsiam.CfnUser_PolicyProperty{PolicyName: jsii.String("outputs"), PolicyDocument: document(allow)}},
	})
	return awsiam.NewCfnAccessKey(h.stack, jsii.String(id+"Key"), &awsiam.CfnAccessKeyProps{
		UserName: user.Ref(), Serial: num(h.settings.OutputsKeySerial),
	})
}
