// Package aws stands in for the AWS SDK's.
package aws

func String(v string) *string { return &v }

func Int64(v int64) *int64 { return &v }
