/* Stands in for libFuzzer: feeds every file of the given folders to the fuzzer's entry,
 * once. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) {
        perror(path);
        exit(1);
    }
    long size = ftell(file);
    rewind(file);
    /* Exactly as large as the input, so that a read past its end is seen. */
    uint8_t *data = malloc(size > 0 ? (size_t)size : 1);
    if (!data || fread(data, 1, (size_t)size, file) != (size_t)size) {
        fprintf(stderr, "%s: cannot be read\n", path);
        exit(1);
    }
    fclose(file);
    LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
}

static int replay_folder(const char *path)
{
    DIR *dir = opendir(path);
    if (!dir) {
        perror(path);
        exit(1);
    }
    int count = 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        char file[4096];
        if (entry->d_type != DT_REG)
            continue;
        snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
        replay_file(file);
        count++;
    }
    closedir(dir);
    return count;
}

int main(int argc, char **argv)
{
    int count = 0;
    for (int i = 1; i < argc; i++)
        count += replay_folder(argv[i]);
    /* An empty corpus would be a test that cannot fail. */
    printf("%d passed, %d failed, 0 skipped\n", count, count == 0);
    return count == 0;
}
