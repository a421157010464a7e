package s3

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/versity/versitygw/s3api/utils"
	"github.com/versity/versitygw/s3response"
)

// listBuckets lists the buckets that the account can access.
func (f *front) listBuckets(r *request) (answer, error) {
	result := s3response.ListAllMyBucketsResult{Owner: s3response.CanonicalUser{ID: r.by.id}}
	for _, name := range []string{f.accepted, f.uploads} {
		if f.allow(r.by, actionOfWorkers, name) == nil {
			result.Buckets.Bucket = append(result.Buckets.Bucket, s3response.ListAllMyBucketsEntry{Name: name, BucketRegion: Region})
		}
	}
	return answer{document: result}, nil
}

// ofRegion returns the response header with the region of a bucket.
func ofRegion() map[string]*string {
	return map[string]*string{"x-amz-bucket-region": aws.String(Region)}
}

func (*front) headBucket(*request) (answer, error) { return answer{headers: ofRegion()}, nil }

func (*front) location(*request) (answer, error) {
	return answer{document: s3response.LocationConstraint{Value: aws.String(Region)}}, nil
}

func (f *front) listObjects(r *request) (answer, error) {
	most, err := utils.ParseMaxLimiter(r.Query("max-keys"), utils.LimiterTypeMaxKeys)
	if err != nil {
		return answer{}, err
	}
	page, err := f.ListObjects(r.RequestCtx(), &awss3.ListObjectsInput{
		Bucket: &r.bucket, Prefix: aws.String(r.Query("prefix")), Marker: aws.String(r.Query("marker")),
		Delimiter: aws.String(r.Query("delimiter")), MaxKeys: &most,
	})
	return answer{headers: ofRegion(), document: page}, err
}

func (f *front) listObjectsV2(r *request) (answer, error) {
	most, err := utils.ParseMaxLimiter(r.Query("max-keys"), utils.LimiterTypeMaxKeys)
	if err != nil {
		return answer{}, err
	}
	page, err := f.ListObjectsV2(r.RequestCtx(), &awss3.ListObjectsV2Input{
		Bucket: &r.bucket, Prefix: aws.String(r.Query("prefix")), ContinuationToken: aws.String(r.Query("continuation-token")),
		StartAfter: aws.String(r.Query("start-after")), Delimiter: aws.String(r.Query("delimiter")), MaxKeys: &most,
	})
	return answer{headers: ofRegion(), document: page}, err
}

func (f *front) listUploads(r *request) (answer, error) {
	most, err := utils.ParseMaxLimiter(r.Query("max-uploads"), utils.LimiterTypeMaxUploads)
	if err != nil {
		return answer{}, err
	}
	page, err := f.ListMultipartUploads(r.RequestCtx(), &awss3.ListMultipartUploadsInput{
		Bucket: &r.bucket, Prefix: aws.String(r.Query("prefix")), Delimiter: aws.String(r.Query("delimiter")),
		KeyMarker: aws.String(r.Query("key-marker")), UploadIdMarker: aws.String(r.Query("upload-id-marker")), MaxUploads: &most,
	})
	return answer{document: page}, err
}
