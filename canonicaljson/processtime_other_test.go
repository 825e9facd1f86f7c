//go:build !unix

package canonicaljson_test

import "time"

var began = time.Now()

func processTime() time.Duration { return time.Since(began) }
