// Package cast has conversions that need no facts.
package cast

import "fmt"

func Text(v any) (string, error) { return fmt.Sprint(v), nil }

func Chunks[T any](all []T, n int) [][]T {
	var chunks [][]T
	for len(all) > n {
		chunks, all = append(chunks, all[:n]), all[n:]
	}
	return append(chunks, all)
}

func Pointer[T any](v T) *T { return &v }
