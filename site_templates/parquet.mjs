// The one place where the browser's Parquet reader is wired: hyparquet for the format, fzstd for its compression.
import { parquetMetadata, parquetReadObjects } from "hyparquet";
import { decompress } from "fzstd";

const compressors = {
  ZSTD: (input, outputLength) => decompress(input, new Uint8Array(outputLength)),
};

/** Return the file's metadata: schema, row groups and key-value notes. */
export function readMetadata(buffer) {
  return parquetMetadata(buffer);
}

/** Return the rows of a Parquet file held in an ArrayBuffer as objects; `columns` limits what is read. */
export function readRows(buffer, { columns, rowStart, rowEnd } = {}) {
  return parquetReadObjects({ file: buffer, columns, rowStart, rowEnd, compressors });
}
