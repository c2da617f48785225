#include <stdio.h>
#include <string.h>
#include <tegula/tegula.h>

/* The program of docs/c.md. */
int main(void) {
  tegula_value* layout = NULL;
  char* text = NULL;
  if (tegula_evaluate("composition((4,4):(4,1), (4,2,2):(2,1,8))", &layout) != TEGULA_OK ||
      tegula_value_text(layout, &text) != TEGULA_OK) {
    fprintf(stderr, "%s\n", tegula_last_error());
    return 1;
  }
  int const wrong = strcmp(text, "((2,2),2,2):((8,1),4,2)");
  puts(text);
  tegula_free(text);
  tegula_value_free(layout);
  return wrong != 0;
}
